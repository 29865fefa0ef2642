#include "worker/layers/float_buffer.h"

#include <glog/logging.h>

namespace lockstep {

FloatBuffer::FloatBuffer(size_t count) : size_(count) {
  const size_t bytes = (count * sizeof(float) / kAlignment + 1) * kAlignment;
  data_.reset(static_cast<float*>(std::aligned_alloc(kAlignment, bytes)));
  CHECK(data_ != nullptr) << "no memory for " << bytes << " bytes";
}

}  // namespace lockstep
