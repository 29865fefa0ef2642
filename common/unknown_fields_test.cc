#include "common/unknown_fields.h"

#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include <string>

#include "proto/inference.pb.h"
#include "proto/sampling.pb.h"

namespace lockstep {
namespace {

void AddUnknownField(google::protobuf::Message* message, int number) {
  message->GetReflection()->MutableUnknownFields(message)->AddVarint(number, 1);
}

TEST(UnknownFields, KnownOnesPass) {
  v1::GenerateRequest request;
  request.mutable_chat()->add_messages()->set_role("user");
  (*request.mutable_sampling()->mutable_logit_bias())[7] = 1;
  EXPECT_TRUE(RefuseUnknownFields(request).ok());
}

TEST(UnknownFields, NamesThePathAndTheNumber) {
  v1::GenerateRequest top, inner, repeated;
  AddUnknownField(&top, 99);
  AddUnknownField(inner.mutable_sampling(), 17);
  repeated.mutable_chat()->add_messages();
  AddUnknownField(repeated.mutable_chat()->add_messages(), 3);
  const struct {
    const v1::GenerateRequest& request;
    std::string error;
  } kCases[] = {
      {top, "field number 99 of GenerateRequest is not known to this server."},
      {inner, "field number 17 of sampling is not known to this server."},
      {repeated,
       "field number 3 of chat.messages[1] is not known to this server."},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(RefuseUnknownFields(c.request),
              absl::InvalidArgumentError(c.error));
  }
}

TEST(UnknownFields, AnEnumValueNeedsAName) {
  v1::TextFinish finish;
  finish.set_reason(v1::LENGTH);
  EXPECT_TRUE(RefuseUnknownFields(finish).ok());
  finish.set_reason(static_cast<v1::FinishReason>(77));
  EXPECT_EQ(RefuseUnknownFields(finish),
            absl::InvalidArgumentError("the value 77 of reason is not one of "
                                       "lockstep.v1.FinishReason."));
}

}  // namespace
}  // namespace lockstep
