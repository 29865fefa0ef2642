#include "tests/simulation/totals.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

namespace lockstep::testing {

void AddTotals(const Totals& more, Totals* totals) {
  const google::protobuf::Descriptor& type = *Totals::descriptor();
  const google::protobuf::Reflection& reflection = *Totals::GetReflection();
  for (int i = 0; i < type.field_count(); ++i) {
    const auto* const field = type.field(i);
    reflection.SetUInt64(totals, field,
                         reflection.GetUInt64(*totals, field) +
                             reflection.GetUInt64(more, field));
  }
}

}  // namespace lockstep::testing
