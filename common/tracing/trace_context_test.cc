#include "common/tracing/trace_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::MatchesRegex;
using ::testing::Pair;

constexpr char kTraceId[] = "0af7651916cd43dd8448eb211c80319c";
constexpr char kTraceparent[] =
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST(TraceContextTest, GoesOnWithTheCallersTraceByASpanOfItsOwn) {
  const TraceContext trace = ContinueTrace(kTraceparent, "congo=t61rcWkgMzE");
  EXPECT_EQ(trace.trace_id, kTraceId);
  EXPECT_THAT(trace.span_id, MatchesRegex("[0-9a-f]{16}"));
  EXPECT_NE(trace.span_id, "b7ad6b7169203331");
  EXPECT_THAT(TraceHeaders(trace),
              ElementsAre(Pair("traceparent", std::string("00-") + kTraceId +
                                                  "-" + trace.span_id + "-01"),
                          Pair("tracestate", "congo=t61rcWkgMzE")));
}

TEST(TraceContextTest, BeginsOneWhereThereIsNone) {
  const TraceContext one = ContinueTrace("", "congo=t61rcWkgMzE");
  EXPECT_THAT(one.trace_id, MatchesRegex("[0-9a-f]{32}"));
  EXPECT_NE(one.trace_id, ContinueTrace("", "").trace_id);
  EXPECT_FALSE(one.is_sampled);
  EXPECT_EQ(one.state, "");
}

// Each of the rules of section 3.2.2.
TEST(TraceContextTest, IgnoresWhatIsMalformed) {
  for (const char* malformed : {
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what",
           "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c-B7AD6B7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g",
           "00-00000000000000000000000000000000-b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
           "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
           "0x-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
           "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01x",
           "00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01",
           " 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
       }) {
    const TraceContext trace = ContinueTrace(malformed, "congo=t61rcWkgMzE");
    EXPECT_NE(trace.trace_id, kTraceId) << malformed;
    EXPECT_EQ(trace.state, "") << malformed;
  }
}

TEST(TraceContextTest, OfALaterVersionTakesWhatItKnows) {
  const TraceContext trace = ContinueTrace(
      "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03-more", "");
  EXPECT_EQ(trace.trace_id, kTraceId);
  EXPECT_TRUE(trace.is_sampled);
  EXPECT_EQ(TraceHeaders(trace)[0].second.substr(0, 3), "00-");
}

TEST(TraceContextTest, AStateIsPassedOn) {
  for (const std::string& state :
       {std::string("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"),
        std::string("fw529a3039@dt=FfAAAA,a/b*c_d-e=0 1"),
        "a=" + std::string(510, 'x')}) {
    EXPECT_EQ(ContinueTrace(kTraceparent, state).state, state);
  }
  EXPECT_EQ(ContinueTrace(kTraceparent, "a=1 ,\t, b=2\t").state, "a=1,b=2");
}

TEST(TraceContextTest, AMalformedStateIsDroppedAlone) {
  std::string many;
  for (int i = 0; i < 33; ++i) many += "k" + std::to_string(i) + "=v,";
  for (const std::string& state :
       {std::string("="), std::string("a"), std::string("a="),
        std::string("A=1"), std::string("a=1=2"), std::string("a=\n"),
        std::string(","), std::string("a b=1"), many,
        "a=" + std::string(511, 'x')}) {
    const TraceContext trace = ContinueTrace(kTraceparent, state);
    EXPECT_EQ(trace.trace_id, kTraceId) << state;
    EXPECT_EQ(trace.state, "") << state;
  }
}

}  // namespace
}  // namespace lockstep
