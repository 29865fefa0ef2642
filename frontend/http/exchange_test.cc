#include "frontend/http/exchange.h"

#include <absl/strings/match.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "frontend/http/message.h"

namespace lockstep::http {
namespace {

class ExchangeTest : public ::testing::Test {
 protected:
  std::shared_ptr<Exchange> Make(Exchange::Facts facts = {}) {
    facts.request_id = "r1";
    return std::make_shared<Exchange>(facts, [this] { ++wakes_; });
  }

  int wakes_ = 0;
};

TEST_F(ExchangeTest, SendsAWhole) {
  const auto exchange = Make();
  exchange->Send({404, {{"a", "b"}}, "gone"});
  exchange->Send({200, {}, "again"});  // dropped
  EXPECT_EQ(wakes_, 1);
  const Exchange::Output output = exchange->Take();
  EXPECT_TRUE(
      absl::StartsWith(output.bytes, "HTTP/1.1 404 Not Found\r\ndate: "))
      << output.bytes;
  EXPECT_TRUE(absl::EndsWith(output.bytes,
                             "x-request-id: r1\r\na: b\r\ncontent-length: 4\r\n"
                             "connection: keep-alive\r\n\r\ngone"))
      << output.bytes;
  EXPECT_TRUE(output.is_last);
  EXPECT_FALSE(output.closes);
}

TEST_F(ExchangeTest, AHeadHasNoBody) {
  Exchange::Facts facts;
  facts.is_head = true;
  const auto exchange = Make(facts);
  exchange->Send({200, {}, "body"});
  EXPECT_TRUE(absl::StrContains(exchange->Take().bytes, "content-length: 4"));
  EXPECT_EQ(exchange->Take().bytes, "");
}

TEST_F(ExchangeTest, LargeAnswersHaveABoundTogether) {
  Exchange::Facts facts;
  facts.room =
      std::make_shared<Exchange::Room>(1000, Response{503, {}, "full"});
  const auto has_room = [&](size_t bytes) {
    const bool has = facts.room->budget.TryTake(bytes);
    if (has) facts.room->budget.Give(bytes);
    return has;
  };
  const std::string small(kMaxBufferedBytes, 'a');
  const std::string large(kMaxBufferedBytes + 600, 'a');
  const auto status = [](const auto& exchange) {
    return exchange->Take().bytes.substr(9, 3);
  };
  const auto first = Make(facts);
  first->Send({200, {}, large});
  EXPECT_EQ(status(first), "200");
  EXPECT_FALSE(has_room(401));
  auto second = Make(facts);
  EXPECT_TRUE(second->Hold(kMaxBufferedBytes));
  EXPECT_TRUE(second->Hold(kMaxBufferedBytes + 300));
  EXPECT_TRUE(second->Hold(kMaxBufferedBytes + 400));
  EXPECT_FALSE(second->Hold(kMaxBufferedBytes + 401));
  second->Send({200, {}, small});  // whatever was held
  EXPECT_EQ(status(second), "200");
  const auto third = Make(facts);
  third->Send({200, {}, large});
  EXPECT_EQ(status(third), "503");
  first->Detach();  // it has gone, or its client has
  EXPECT_TRUE(has_room(600));
  EXPECT_FALSE(has_room(601));
  second = nullptr;
  EXPECT_TRUE(has_room(1000));
  const auto fourth = Make(facts);
  fourth->Detach();
  EXPECT_TRUE(fourth->Hold(1 << 30));  // nobody waits for it
  EXPECT_TRUE(has_room(1000));
}

TEST_F(ExchangeTest, StreamsInChunksOrUntilTheConnectionCloses) {
  for (const int version : {10, 11}) {
    Exchange::Facts facts;
    facts.version = version;
    const auto exchange = Make(facts);
    exchange->StartStream({}, ": alive\n\n");
    exchange->Take();
    exchange->Write("hello");
    exchange->Write("");
    exchange->Write("you");
    EXPECT_FALSE(exchange->KeepAlive());  // there is something to write
    EXPECT_EQ(exchange->Take().bytes,
              version == 11 ? "5\r\nhello\r\n3\r\nyou\r\n" : "helloyou");
    EXPECT_TRUE(exchange->KeepAlive());
    exchange->Take();
    exchange->End(ResponseWriter::After::kKeepConnection);
    EXPECT_FALSE(exchange->KeepAlive());
    const Exchange::Output end = exchange->Take();
    EXPECT_EQ(end.bytes, version == 11 ? "0\r\n\r\n" : "");
    EXPECT_TRUE(end.is_last);
    EXPECT_EQ(end.closes, version == 10);
  }
}

TEST_F(ExchangeTest, WaitsForAReaderThatLagsBehind) {
  const auto exchange = Make();
  exchange->StartStream({}, "");
  const size_t head = exchange->Take().bytes.size();
  int resumed = 0;
  exchange->AwaitRoom([&] { ++resumed; });
  EXPECT_EQ(resumed, 1);
  exchange->Write(std::string(kMaxBufferedBytes, 'a'));
  exchange->AwaitRoom([&] { ++resumed; });
  const size_t taken = exchange->Take().bytes.size();
  exchange->OnWritten(head);
  EXPECT_EQ(resumed, 1);  // on its way, but not gone
  exchange->OnWritten(taken);
  EXPECT_EQ(resumed, 2);
}

// Whoever ends it may hold what a resume takes, so another one resumes.
TEST_F(ExchangeTest, NobodyWaitsForRoomInAnAnswerThatHasEnded) {
  const auto exchange = Make();
  exchange->StartStream({}, "");
  exchange->Take();
  exchange->Write(std::string(kMaxBufferedBytes, 'a'));
  int resumed = 0;
  exchange->AwaitRoom([&] { ++resumed; });
  exchange->ResumeIfEnded();
  EXPECT_EQ(resumed, 0);
  const int wakes = wakes_;
  exchange->End(ResponseWriter::After::kCloseConnection);
  EXPECT_EQ(resumed, 0);
  EXPECT_GT(wakes_, wakes);
  exchange->ResumeIfEnded();
  EXPECT_EQ(resumed, 1);
  exchange->AwaitRoom([&] { ++resumed; });
  EXPECT_EQ(resumed, 2);
}

TEST_F(ExchangeTest, TellsOnceThatTheClientHasGone) {
  const auto exchange = Make();
  int gone = 0;
  int resumed = 0;
  exchange->OnGone([&] { ++gone; });
  exchange->StartStream({}, "");
  exchange->Write(std::string(kMaxBufferedBytes, 'a'));
  exchange->AwaitRoom([&] { ++resumed; });
  const int wakes = wakes_;
  exchange->Detach();
  exchange->Detach();
  EXPECT_EQ(gone, 1);
  EXPECT_EQ(resumed, 1);
  exchange->OnGone([&] { ++gone; });  // late, and so at once
  EXPECT_EQ(gone, 2);
  exchange->Write("more");
  exchange->End(ResponseWriter::After::kKeepConnection);
  EXPECT_EQ(wakes_, wakes);
}

TEST_F(ExchangeTest, AnAnswerThatHasEndedIsNotCutShort) {
  const auto exchange = Make();
  int gone = 0;
  exchange->OnGone([&] { ++gone; });
  exchange->Send({});
  exchange->Detach();
  EXPECT_EQ(gone, 0);
}

TEST_F(ExchangeTest, AWriterThatIsDroppedIsAnError) {
  const auto exchange = Make();
  Exchange::WriterOf(exchange);
  const Exchange::Output output = exchange->Take();
  EXPECT_TRUE(absl::StartsWith(output.bytes, "HTTP/1.1 500 ")) << output.bytes;
  const auto stream = Make();
  Exchange::WriterOf(stream)->StartStream({}, "");
  EXPECT_TRUE(stream->Take().closes);
}

TEST_F(ExchangeTest, TellsTheBookTheStatusThatTheClientGot) {
  const auto code_of = [this](const auto& answer) {
    const auto access = std::make_shared<AccessRecord>(
        AccessRecord::Request{.surface = "http"});
    Exchange::Facts facts;
    facts.access = access;
    const auto exchange = Make(facts);
    answer(*exchange);
    exchange->Detach();
    return access->code();
  };
  EXPECT_EQ(code_of([](Exchange& e) { e.Send({404, {}, ""}); }), "404");
  EXPECT_EQ(code_of([](Exchange& e) {
              e.StartStream({200, {}, ""}, "");
            }),
            "200");
  // It left before there was an answer.
  EXPECT_EQ(code_of([](Exchange& e) {
              e.Detach();
              e.Send({500, {}, ""});
            }),
            "499");
}

}  // namespace
}  // namespace lockstep::http
