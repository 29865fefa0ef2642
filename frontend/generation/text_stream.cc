#include "frontend/generation/text_stream.h"

#include "common/status_macros.h"

namespace lockstep {

TextStream::TextStream(const Tokenizer* tokenizer, const GenerateSpec& spec,
                       absl::Span<const uint32_t> shown)
    : vocabulary_size_(tokenizer->info().vocabulary_size),
      decoder_(tokenizer, spec.skip_special_tokens, shown),
      matcher_(spec.stop, spec.include_stop_str_in_output) {}

absl::StatusOr<TextStream::Piece> TextStream::Add(
    absl::Span<const uint32_t> ids) {
  Piece piece;
  // One by one where the id that completes a stop string must be known.
  const size_t stride = matcher_.has_stops() ? 1 : ids.size();
  while (piece.num_tokens < ids.size() && !stop_string().has_value()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string text,
                              Decode(ids.subspan(piece.num_tokens, stride)));
    piece.text += matcher_.Add(text);
    piece.num_tokens += stride;
  }
  num_tokens_ += piece.num_tokens;
  return piece;
}

absl::StatusOr<std::string> TextStream::Finish() {
  if (stop_string().has_value()) return "";
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string rest, decoder_.Finish());
  std::string text = matcher_.Add(rest);
  return text + matcher_.Finish();
}

// A model can sample an id that only pads its vocabulary; it has no text.
absl::StatusOr<std::string> TextStream::Decode(absl::Span<const uint32_t> ids) {
  std::string text;
  while (!ids.empty()) {
    size_t known = 0;
    while (known < ids.size() && ids[known] < vocabulary_size_) ++known;
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string piece,
                              decoder_.Add(ids.first(known)));
    text += piece;
    ids.remove_prefix(known < ids.size() ? known + 1 : known);
  }
  return text;
}

}  // namespace lockstep
