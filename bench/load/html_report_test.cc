#include "bench/load/html_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bench/load/svg_plot.h"

namespace lockstep::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

int Count(const std::string& text, const std::string& part) {
  int number = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1)) {
    ++number;
  }
  return number;
}

LoadRun LabelledRun(const std::string& label) {
  LoadRun run;
  run.label = label;
  for (int i = 0; i < 20; ++i) {
    run.records.push_back({.due_s = i * 0.5,
                           .first_s = i * 0.5 + 0.1,
                           .end_s = i * 0.5 + 0.4,
                           .tokens = 4});
  }
  run.seconds = 10;
  run.inter_token.Record(0.1);
  return run;
}

std::string HtmlOf(const std::vector<LoadRun>& runs) {
  return ToHtml(runs, SummarizeEach(runs, Slo()), Slo());
}

TEST(ToHtml, ShowsEachRunInEachPlot) {
  const std::string html = HtmlOf({LabelledRun("one"), LabelledRun("two")});
  EXPECT_EQ(Count(html, "<svg"), 6);
  EXPECT_EQ(Count(html, "class=line"), 5 * 2);
  EXPECT_EQ(Count(html, "class=dots"), 2);
  EXPECT_THAT(html, HasSubstr("<th>two"));
}

TEST(ToHtml, TakesNoMarkupFromLabels) {
  const std::string html = HtmlOf({LabelledRun("<script>'&")});
  EXPECT_THAT(html, Not(HasSubstr("<script>")));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;&#39;&amp;"));
}

TEST(ToHtml, OfARunWithoutAnswersIsAPageToo) {
  LoadRun run;
  run.label = "none";
  run.records = {{.due_s = 0, .end_s = 1, .error = "UNAVAILABLE"}};
  run.seconds = 1;
  EXPECT_THAT(HtmlOf({run}), HasSubstr("UNAVAILABLE"));
  EXPECT_THAT(HtmlOf({LoadRun()}), Not(HasSubstr("nan")));
}

// 0 to 10 on an axis from 64 to 624: a tick each 2, and the point in the middle
// is at 344.
TEST(ToSvg, PutsPointsWhereTheyBelong) {
  const std::string svg =
      ToSvg({.series = {{.points = {{0, 0}, {5, 50}, {10, 100}}}}});
  EXPECT_THAT(svg, HasSubstr("d='M64.0 272.0L344.0 162.0L624.0 52.0'"));
  EXPECT_THAT(svg, HasSubstr(">8</text>"));
  EXPECT_THAT(svg, HasSubstr(">80</text>"));
}

TEST(ToSvg, HasRoundNumbersOnALogarithmicAxis) {
  const std::string svg =
      ToSvg({.x_is_logarithmic = true,
             .series = {{.points = {{0, 1}, {1, 1}, {1000, 2}}}}});
  for (const char* tick :
       {">1</text>", ">2</text>", ">50</text>", ">1000</text>"}) {
    EXPECT_THAT(svg, HasSubstr(tick));
  }
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

}  // namespace
}  // namespace lockstep::bench
