#include "frontend/discovery/dns_discovery.h"

#include <absl/synchronization/notification.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace lockstep {
namespace {

using Addresses = std::vector<std::string>;

TEST(ParseDnsName, TakesANameAndAPort) {
  const auto name = ParseDnsName("workers.ns:50052");
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(name->host, "workers.ns");
  EXPECT_EQ(name->port, 50052);
  for (const char* bad : {"", "workers", ":1", "a:0", "a:65536", "a:b", "a:"}) {
    EXPECT_FALSE(ParseDnsName(bad).has_value()) << bad;
  }
}

TEST(Resolve, GivesEachAddressOnceWithThePort) {
  const auto addresses = Resolve({"127.0.0.1", 7});
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  EXPECT_EQ(*addresses, Addresses{"127.0.0.1:7"});
  EXPECT_EQ(Resolve({"::1", 7}).value_or(Addresses{}), Addresses{"[::1]:7"});
  EXPECT_EQ(Resolve({"", 7}).status().code(), absl::StatusCode::kUnavailable);
}

TEST(Resolve, CountsAHostOfBothFamiliesOnce) {
  const FoundAddress a4 = {false, "10.0.0.1:7"}, b4 = {false, "10.0.0.2:7"};
  const FoundAddress a6 = {true, "[fd00::1]:7"}, b6 = {true, "[fd00::2]:7"};
  EXPECT_EQ(OfOneFamily({}), Addresses());
  EXPECT_EQ(OfOneFamily({b4, a4, b4}), (Addresses{a4.text, b4.text}));
  EXPECT_EQ(OfOneFamily({b6, a6}), (Addresses{a6.text, b6.text}));
  // As many: that which the system would try first.
  EXPECT_EQ(OfOneFamily({b4, a4, a6, b6}), (Addresses{a4.text, b4.text}));
  EXPECT_EQ(OfOneFamily({b6, a6, a4, b4}), (Addresses{a6.text, b6.text}));
  // A host that has none of the other is not lost.
  EXPECT_EQ(OfOneFamily({a6, a4, b4}), (Addresses{a4.text, b4.text}));
  EXPECT_EQ(OfOneFamily({a4, a6, b6}), (Addresses{a6.text, b6.text}));
}

// What it tells of a list of answers, the last of which comes again.
std::vector<Addresses> Told(std::vector<absl::StatusOr<Addresses>> answers,
                            size_t expected) {
  size_t next = 0;
  std::vector<Addresses> told;
  absl::Notification all_asked;
  DnsDiscovery discovery(
      [&] {
        const auto& answer = answers[std::min(next, answers.size() - 1)];
        if (++next == answers.size() + 1) all_asked.Notify();
        return answer;
      },
      [&](const Addresses& addresses) { told.push_back(addresses); },
      absl::Milliseconds(1));
  discovery.Start();
  all_asked.WaitForNotification();
  discovery.Stop();
  EXPECT_EQ(told.size(), expected);
  return told;
}

TEST(DnsDiscovery, TellsOfEachChangeOnce) {
  EXPECT_EQ(Told({Addresses{"a:1"}, Addresses{"a:1"}, Addresses{"a:1", "b:1"},
                  Addresses{"b:1"}},
                 3),
            (std::vector<Addresses>{{"a:1"}, {"a:1", "b:1"}, {"b:1"}}));
}

TEST(DnsDiscovery, WhatCannotBeResolvedStays) {
  const absl::Status failure = absl::UnavailableError("no such name");
  EXPECT_EQ(
      Told({failure, Addresses{"a:1"}, failure, failure, Addresses{"a:1"}}, 1),
      std::vector<Addresses>{{"a:1"}});
}

}  // namespace
}  // namespace lockstep
