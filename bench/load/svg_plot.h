#pragma once

#include <string>
#include <vector>

namespace lockstep::bench {

struct Point {
  double x = 0;
  double y = 0;
};

struct Series {
  std::string name = "";
  std::vector<Point> points = {};
};

// A plot as a reader of it thinks of it.
struct Plot {
  enum class Kind { kLines, kDots };

  std::string title = "";
  std::string x_label = "";
  std::string y_label = "";
  Kind kind = Kind::kLines;
  bool x_is_logarithmic = false;    // what is not above 0 is left out
  std::vector<Series> series = {};  // at most as many as there are colours: 4
};

// An <svg> element for a page of HTML: axes with round numbers, a legend where
// there are several series. It scales with the page, and has no script.
std::string ToSvg(const Plot& plot);

// Text for HTML and SVG.
std::string Escape(const std::string& text);

}  // namespace lockstep::bench
