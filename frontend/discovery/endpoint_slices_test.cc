#include "frontend/discovery/endpoint_slices.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/testing/kubernetes/endpoint_slice.h"

namespace lockstep {
namespace {

using ::lockstep::testing::Endpoint;
using ::lockstep::testing::EndpointSlice;
using ::nlohmann::json;

using Addresses = std::vector<std::string>;

std::string List(const std::vector<json>& items, const char* version = "7") {
  return json{{"metadata", {{"resourceVersion", version}}}, {"items", items}}
      .dump();
}

std::string Event(const char* type, json object, const char* version = "8") {
  object["metadata"]["resourceVersion"] = version;
  return json{{"type", type}, {"object", std::move(object)}}.dump();
}

// Those of a list of slices.
Addresses Listed(const std::vector<json>& items) {
  EndpointSlices slices;
  const absl::Status status = slices.TakeList(List(items));
  EXPECT_TRUE(status.ok()) << status;
  return slices.Addresses();
}

TEST(EndpointSlices, ThoseThatAreReadyCount) {
  EXPECT_EQ(Listed({EndpointSlice(
                "a", 50052,
                {{"10.0.0.4"},
                 {.address = "10.0.0.1", .ready = std::nullopt},
                 {.address = "10.0.0.2", .ready = false},
                 // As a Service publishes one that is not ready.
                 {.address = "10.0.0.3", .ready = true, .terminating = true},
                 {.address = "10.0.0.5", .terminating = false}})}),
            (Addresses{"10.0.0.1:50052", "10.0.0.4:50052", "10.0.0.5:50052"}));
}

TEST(EndpointSlices, ASliceOfNothingIsNone) {
  EXPECT_EQ(Listed({}), Addresses{});
  json empty = EndpointSlice("a", 50052, {});
  empty["endpoints"] = nullptr;
  empty["ports"] = nullptr;
  EXPECT_EQ(Listed({empty}), Addresses{});
  EndpointSlices slices;
  EXPECT_TRUE(
      slices.TakeList(R"({"metadata":{"resourceVersion":"7"},"items":null})")
          .ok());
}

TEST(EndpointSlices, APodCountsOnce) {
  EXPECT_EQ(Listed({
                EndpointSlice("six", 50052,
                              {{"fd00::1", "pod-1"}, {"fd00::2", "pod-2"}}),
                EndpointSlice(
                    "old", 50052,
                    {{"10.0.0.1", "pod-1"},
                     {.address = "10.0.0.3", .uid = "pod-3", .ready = false}}),
                EndpointSlice("new", 50052,
                              {{"10.0.0.1", "pod-1"}, {"10.0.0.3", "pod-3"}}),
            }),
            (Addresses{"10.0.0.1:50052", "10.0.0.3:50052", "[fd00::2]:50052"}));
}

TEST(EndpointSlices, WhatIsNoPodIsItsAddress) {
  EXPECT_EQ(Listed({EndpointSlice("a", 1, {{"10.0.0.1"}}),
                    EndpointSlice("b", 2, {{"10.0.0.1"}}),
                    EndpointSlice("c", 2, {{"10.0.0.1"}})}),
            (Addresses{"10.0.0.1:1", "10.0.0.1:2"}));
}

TEST(EndpointSlices, ThePortIsTheOneCalledGrpcOrTheOnly) {
  json slice = EndpointSlice("a", 1, {{"10.0.0.1"}});
  slice["ports"] = {{{"name", "metrics"}, {"port", 2}},
                    {{"name", "grpc"}, {"port", 3}}};
  EXPECT_EQ(Listed({slice}), Addresses{"10.0.0.1:3"});
  slice["ports"].erase(1);
  EXPECT_EQ(Listed({slice}), Addresses{"10.0.0.1:2"});
  slice["ports"].push_back({{"name", "http"}, {"port", 4}});
  EndpointSlices slices;
  EXPECT_EQ(slices.TakeList(List({slice})),
            absl::FailedPreconditionError(
                "the Service has 2 ports and none is called grpc"));
  for (const json& none :
       {json(nullptr), json::array(), json::array({json{{"name", ""}}})}) {
    slice["ports"] = none;
    EXPECT_EQ(Listed({slice}), Addresses{}) << none;
  }
}

TEST(EndpointSlices, EventsChangeWhatAListSaid) {
  EndpointSlices slices;
  EXPECT_EQ(slices.version(), "");
  ASSERT_TRUE(slices
                  .TakeList(List({EndpointSlice("a", 1, {{"10.0.0.1"}}),
                                  EndpointSlice("b", 1, {{"10.0.0.2"}})}))
                  .ok());
  EXPECT_EQ(slices.version(), "7");
  const struct {
    std::string event;
    const char* version;
    Addresses addresses;
  } kSteps[] = {
      {Event("ADDED", EndpointSlice("c", 1, {{"10.0.0.3"}}), "8"),
       "8",
       {"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"}},
      {Event("MODIFIED",
             EndpointSlice("a", 1, {{.address = "10.0.0.1", .ready = false}}),
             "11"),
       "11",
       {"10.0.0.2:1", "10.0.0.3:1"}},
      {Event("DELETED", EndpointSlice("b", 1, {{"10.0.0.2"}}), "12"),
       "12",
       {"10.0.0.3:1"}},
      {Event("DELETED", EndpointSlice("never", 1, {}), "13"),
       "13",
       {"10.0.0.3:1"}},
      {Event("BOOKMARK", json::object(), "20"), "20", {"10.0.0.3:1"}},
  };
  for (const auto& step : kSteps) {
    const absl::Status status = slices.TakeEvent(step.event);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(slices.version(), step.version);
    EXPECT_EQ(slices.Addresses(), step.addresses) << step.event;
  }
  ASSERT_TRUE(slices.TakeList(List({}, "30")).ok());
  EXPECT_EQ(slices.Addresses(), Addresses{});
}

TEST(EndpointSlices, AnErrorIsTheServersOrOurs) {
  EndpointSlices slices;
  const auto error = [](int code) {
    return json{{"type", "ERROR"},
                {"object", {{"code", code}, {"message", "why\n"}}}}
        .dump();
  };
  EXPECT_EQ(slices.TakeEvent(error(410)),
            absl::OutOfRangeError("the API server answers 410: why\\n"));
  EXPECT_EQ(slices.TakeEvent(error(500)).code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(slices.TakeEvent(error(7)).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(EndpointSlices, WhatIsWrongChangesNothing) {
  EndpointSlices slices;
  ASSERT_TRUE(
      slices.TakeList(List({EndpointSlice("a", 1, {{"10.0.0.1"}})})).ok());
  json no_address = EndpointSlice("a", 1, {{"10.0.0.1"}});
  no_address["endpoints"][0]["addresses"] = json::array();
  json other_family = EndpointSlice("a", 1, {{"10.0.0.1"}});
  other_family["addressType"] = "IPv6";
  json no_type = EndpointSlice("a", 1, {{"10.0.0.1"}});
  no_type.erase("addressType");
  for (const std::string& wrong :
       {std::string(), std::string("{"), std::string("[]"), std::string("7"),
        Event("CHANGED", EndpointSlice("a", 1, {})),
        Event("MODIFIED", EndpointSlice("a", 1, {{"unix:/tmp/socket"}})),
        Event("MODIFIED", EndpointSlice("a", 1, {{"10.0.0"}})),
        Event("MODIFIED", EndpointSlice("a", 0, {{"10.0.0.1"}})),
        Event("MODIFIED", EndpointSlice("a", 65'536, {{"10.0.0.1"}})),
        Event("MODIFIED", no_address), Event("MODIFIED", other_family),
        Event("MODIFIED", no_type),
        Event("DELETED", EndpointSlice("a", 1, {}), ""),
        std::string(R"({"type":"DELETED","object":{"metadata":"a"}})"),
        Event("DELETED", EndpointSlice("a", 1, {}), "8&watch=false")}) {
    EXPECT_EQ(slices.TakeEvent(wrong).code(),
              absl::StatusCode::kInvalidArgument)
        << wrong;
    EXPECT_EQ(slices.TakeList(wrong).code(), absl::StatusCode::kInvalidArgument)
        << wrong;
  }
  EXPECT_EQ(slices.TakeList(List({no_address})).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(slices.version(), "7");
  EXPECT_EQ(slices.Addresses(), Addresses{"10.0.0.1:1"});
}

}  // namespace
}  // namespace lockstep
