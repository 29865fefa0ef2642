#!/usr/bin/env python3
"""The chart's disruption budgets let one group of a set go at a time, in whatever order Pods are evicted.

The eviction API takes a Pod's budget before it deletes the Pod; the group's
other Pods are deleted by LeaderWorkerSet, some time later. What may be evicted
in between is what this computes, by the rules of the API, and for each order.
"""

import copy
import unittest

import binaries
import manifests

FOLDERS = sorted((binaries.ROOT / "deploy/kustomize").glob("*/manifests.yaml"))
SET = "leaderworkerset.sigs.k8s.io/name"
INDEX = "leaderworkerset.sigs.k8s.io/worker-index"
LEAST_GROUPS = 3


def pods_of(group_set):
    """(group, labels) of each Pod of a set, of a few groups at least."""
    spec = group_set["spec"]
    template = spec["leaderWorkerTemplate"]["workerTemplate"]
    leader = spec["leaderWorkerTemplate"].get("leaderTemplate", template)
    for group in range(max(spec.get("replicas", 1), LEAST_GROUPS)):
        for index in range(spec["leaderWorkerTemplate"]["size"]):
            labels = (leader if index == 0 else template)["metadata"]["labels"]
            yield group, {**labels, SET: group_set["metadata"]["name"], INDEX: str(index)}


def allowed(spec, chosen):
    """How many of the Pods that a budget chooses may be evicted while all are healthy."""
    if "maxUnavailable" in spec:
        return spec["maxUnavailable"]
    return max(0, chosen - spec["minAvailable"])


def most_groups(group_set, budgets):
    """Of how many groups a Pod may be evicted before anybody reacts. A Pod with two budgets can not be evicted at all."""
    pods = list(pods_of(group_set))
    groups = {}
    for number, budget in enumerate(budgets):
        labels = budget["spec"]["selector"]["matchLabels"].items()
        for place, (group, own) in enumerate(pods):
            if labels <= own.items():
                groups.setdefault(place, []).append(number)
    if any(len(groups.get(place, [])) != 1 for place in range(len(pods))):
        raise ValueError("a Pod has no budget, or several")
    left = [
        allowed(budget["spec"], sum(number in chosen for chosen in groups.values())) for number, budget in enumerate(budgets)
    ]
    # Each budget spends all it has on groups that no other has touched, as far as there are any.
    return min(sum(left), 1 + max(group for group, _ in pods))


def for_each_role(budget, size, replicas):
    """Two budgets in place of one: of leaders, and of followers."""
    for index, least in (("0", replicas - 1), ("1", (replicas - 1) * (size - 1))):
        made = copy.deepcopy(budget)
        del made["spec"]["maxUnavailable"]
        made["spec"]["minAvailable"] = least
        made["spec"]["selector"]["matchLabels"][INDEX] = index
        yield made


def sets():
    """(set, the budgets of its Pods) of all manifests."""
    for path in FOLDERS:
        objects = manifests.load(path)
        budgets = manifests.of_kind(objects, "PodDisruptionBudget")
        for group_set in manifests.of_kind(objects, "LeaderWorkerSet"):
            labels = [own for _, own in pods_of(group_set)]
            of_set = [
                each
                for each in budgets
                if any(each["spec"]["selector"]["matchLabels"].items() <= own.items() for own in labels)
            ]
            yield group_set, of_set


class EvictionsTest(unittest.TestCase):
    def test_one_group_of_a_set_goes_at_a_time(self):
        sizes = set()
        for group_set, budgets in sets():
            sizes.add(group_set["spec"]["leaderWorkerTemplate"]["size"])
            self.assertEqual(most_groups(group_set, budgets), 1, group_set["metadata"]["name"])
        self.assertGreater(max(sizes), 1)

    def test_a_pod_that_is_not_well_never_holds_up_a_drain(self):
        for _, budgets in sets():
            for budget in budgets:
                self.assertEqual(budget["spec"]["unhealthyPodEvictionPolicy"], "AlwaysAllow")

    def test_a_budget_for_each_role_would_let_two_go(self):
        """A follower of one group and the leader of another: each role's budget has one left."""
        tried = 0
        for group_set, budgets in sets():
            size = group_set["spec"]["leaderWorkerTemplate"]["size"]
            if size == 2:
                tried += 1
                (budget,) = budgets
                self.assertEqual(most_groups(group_set, list(for_each_role(budget, size, LEAST_GROUPS))), 2)
        self.assertGreater(tried, 0)


if __name__ == "__main__":
    unittest.main()
