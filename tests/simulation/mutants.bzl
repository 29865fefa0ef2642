"""Proofs that the simulation can fail."""

load("//bazel:defs.bzl", "lockstep_cc_test")

_EXPECTATION = """
#include "tests/simulation/scenario.pb.h"
namespace lockstep::testing {
extern const Fault::Kind kMutantFault = Fault::%s;
extern const bool kMutantOverlaps = %s;
extern const char kMutantFound[] = "%s";
}
"""

def mutant_test(name, source, change, found, fault = "NONE", overlaps = False):
    """Links mutant_test with a file in which something is wrong.

    Args:
      name: what is wrong.
      source: the label of a .cc file. The changed one takes its place, as the
        linker looks into libraries only for what it still misses.
      change: a sed expression, which must change something.
      found: a regular expression for what the simulation says then.
      fault: the Fault::Kind of the scenarios.
      overlaps: whether their ranks have two steps in flight.
    """
    native.genrule(
        name = name + "_source",
        testonly = True,
        srcs = [source],
        outs = [name + ".cc"],
        cmd = "sed '%s' $< > $@ && ! cmp -s $< $@ && echo '%s' >> $@" % (
            change.replace("$", "$$"),
            _EXPECTATION % (fault, str(overlaps).lower(), found),
        ),
    )
    lockstep_cc_test(
        name = name + "_test",
        size = "medium",
        srcs = [name + ".cc"],
        # It is of another folder, where its deps are.
        features = ["-layering_check"],
        linkstatic = True,
        deps = [
            ":mutant_test",
            ":scenario_proto",
            "//third_party/system:absl",
            "//third_party/system:glog",
        ],
    )
