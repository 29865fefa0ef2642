#include "bench/load/svg_plot.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_replace.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace lockstep::bench {
namespace {

constexpr double kWidth = 640, kHeight = 320;
constexpr double kLeft = 64, kRight = 16, kTop = 52, kBottom = 48;
constexpr double kTicks = 6;
// Told apart by those who see no red or green, too.
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7"};

// From values to places on the page.
class Axis {
 public:
  Axis(double least, double most, bool is_logarithmic, double from, double to)
      : is_logarithmic_(is_logarithmic), from_(from), to_(to) {
    least_ = Scale(least);
    most_ = std::max(Scale(most), least_ + 1e-9);
  }

  double Place(double value) const {
    return from_ + (Scale(value) - least_) / (most_ - least_) * (to_ - from_);
  }

  std::vector<double> Ticks() const {
    std::vector<double> ticks;
    if (is_logarithmic_) {
      for (double power = std::floor(least_); power <= most_; ++power) {
        for (const double factor : {1, 2, 5}) {
          const double tick = factor * std::pow(10, power);
          if (Scale(tick) >= least_ && Scale(tick) <= most_) {
            ticks.push_back(tick);
          }
        }
      }
      return ticks;
    }
    const double rough = (most_ - least_) / kTicks;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    double step = 10 * power;
    for (const double factor : {5, 2, 1}) {
      if (factor * power >= rough) step = factor * power;
    }
    for (double i = std::ceil(least_ / step); i * step <= most_; ++i) {
      ticks.push_back(i * step);
    }
    return ticks;
  }

 private:
  double Scale(double value) const {
    return is_logarithmic_ ? std::log10(value) : value;
  }

  const bool is_logarithmic_;
  const double from_, to_;
  double least_, most_;
};

struct Range {
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();

  void Add(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  bool is_empty() const { return least > most; }
};

bool IsShown(const Plot& plot, const Point& point) {
  return std::isfinite(point.x) && std::isfinite(point.y) &&
         (!plot.x_is_logarithmic || point.x > 0);
}

void AddGrid(const Axis& x, const Axis& y, std::string* svg) {
  const double bottom = kHeight - kBottom, right = kWidth - kRight;
  for (const double tick : x.Ticks()) {
    absl::StrAppendFormat(
        svg,
        "<path class=grid d='M%.1f %.0fV%.0f'/><text x=%.1f y=%.0f "
        "text-anchor=middle>%g</text>\n",
        x.Place(tick), kTop, bottom, x.Place(tick), bottom + 16, tick);
  }
  for (const double tick : y.Ticks()) {
    absl::StrAppendFormat(
        svg,
        "<path class=grid d='M%.0f %.1fH%.0f'/><text x=%.0f y=%.1f "
        "text-anchor=end>%g</text>\n",
        kLeft, y.Place(tick), right, kLeft - 6, y.Place(tick) + 4, tick);
  }
}

void AddWords(const Plot& plot, std::string* svg) {
  absl::StrAppendFormat(svg, "<text class=title x=%.0f y=18>%s</text>\n", kLeft,
                        Escape(plot.title));
  absl::StrAppendFormat(
      svg, "<text x=%.0f y=%.0f text-anchor=middle>%s</text>\n",
      (kLeft + kWidth - kRight) / 2, kHeight - 10, Escape(plot.x_label));
  absl::StrAppendFormat(svg,
                        "<text transform='translate(14 %.0f) rotate(-90)' "
                        "text-anchor=middle>%s</text>\n",
                        (kTop + kHeight - kBottom) / 2, Escape(plot.y_label));
}

void AddSeries(const Plot& plot, const Series& series, const Axis& x,
               const Axis& y, const char* colour, std::string* svg) {
  std::string path;
  for (const Point& point : series.points) {
    if (!IsShown(plot, point)) continue;
    if (plot.kind == Plot::Kind::kDots) {
      // A line without length, whose round ends are a dot.
      absl::StrAppendFormat(&path, "M%.1f %.1fh0", x.Place(point.x),
                            y.Place(point.y));
    } else {
      absl::StrAppendFormat(&path, "%s%.1f %.1f", path.empty() ? "M" : "L",
                            x.Place(point.x), y.Place(point.y));
    }
  }
  absl::StrAppendFormat(svg, "<path class=%s stroke='%s' d='%s'/>\n",
                        plot.kind == Plot::Kind::kDots ? "dots" : "line",
                        colour, path);
}

void AddLegend(const std::vector<Series>& series, std::string* svg) {
  double x = kLeft;
  for (size_t i = 0; i < series.size(); ++i) {
    absl::StrAppendFormat(svg, "<text x=%.0f y=38 fill='%s'>%s</text>\n", x,
                          kColours[i % std::size(kColours)],
                          Escape(series[i].name));
    x += 7.0 * series[i].name.size() + 16;
  }
}

}  // namespace

std::string Escape(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"},
                                    {"<", "&lt;"},
                                    {">", "&gt;"},
                                    {"'", "&#39;"},
                                    {"\"", "&quot;"}});
}

std::string ToSvg(const Plot& plot) {
  Range across, up;
  up.Add(0);
  for (const Series& series : plot.series) {
    for (const Point& point : series.points) {
      if (!IsShown(plot, point)) continue;
      across.Add(point.x);
      up.Add(point.y);
    }
  }
  if (!plot.x_is_logarithmic) across.Add(0);
  std::string svg = absl::StrFormat("<svg viewBox='0 0 %.0f %.0f' role=img>\n",
                                    kWidth, kHeight);
  AddWords(plot, &svg);
  if (!across.is_empty()) {
    const Axis x(across.least, across.most, plot.x_is_logarithmic, kLeft,
                 kWidth - kRight);
    const Axis y(up.least, up.most, false, kHeight - kBottom, kTop);
    AddGrid(x, y, &svg);
    for (size_t i = 0; i < plot.series.size(); ++i) {
      AddSeries(plot, plot.series[i], x, y, kColours[i % std::size(kColours)],
                &svg);
    }
  }
  if (plot.series.size() > 1) AddLegend(plot.series, &svg);
  return svg + "</svg>\n";
}

}  // namespace lockstep::bench
