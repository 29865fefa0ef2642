#pragma once

#include <cstddef>
#include <cstdint>

struct CUctx_st;
struct CUstream_st;
struct CUevent_st;

namespace lockstep {

// What of CUDA's driver API is called, as its ABI has it (CUDA Driver API,
// version 13.0). The entry points are found at run time, so this program is
// built without a header of CUDA's and starts without a driver.
struct CudaApi {
  using Result = int;  // CUresult
  using Device = int;
  using Context = CUctx_st*;
  using Stream = CUstream_st*;
  using Event = CUevent_st*;
  using Address = uint64_t;  // CUdeviceptr

  Result (*init)(unsigned flags);
  Result (*driver_version)(int* version);
  Result (*error_name)(Result, const char** name);
  Result (*error_string)(Result, const char** description);

  Result (*device_count)(int* count);
  Result (*device_get)(Device*, int ordinal);
  Result (*device_name)(char* name, int bytes, Device);
  Result (*device_attribute)(int* value, int attribute, Device);
  Result (*primary_context_retain)(Context*, Device);
  Result (*primary_context_release)(Device);
  Result (*set_current)(Context);

  Result (*memory_info)(size_t* free, size_t* total);
  Result (*allocate)(Address*, size_t bytes);
  Result (*free)(Address);
  Result (*host_allocate)(void**, size_t bytes, unsigned flags);
  Result (*host_free)(void*);
  Result (*copy_to_device)(Address, const void*, size_t bytes, Stream);
  Result (*copy_to_host)(void*, Address, size_t bytes, Stream);
  Result (*copy_on_device)(Address to, Address from, size_t bytes, Stream);
  Result (*fill)(Address, unsigned char value, size_t bytes, Stream);

  Result (*stream_create)(Stream*, unsigned flags);
  Result (*stream_destroy)(Stream);
  Result (*stream_synchronize)(Stream);
  Result (*stream_query)(Stream);
  Result (*stream_wait)(Stream, Event, unsigned flags);
  Result (*event_create)(Event*, unsigned flags);
  Result (*event_destroy)(Event);
  Result (*event_record)(Event, Stream);
  Result (*event_query)(Event);
  Result (*event_synchronize)(Event);

  // CUresult.
  static constexpr Result kSuccess = 0;
  static constexpr Result kOutOfMemory = 2;
  static constexpr Result kNoDevice = 100;
  static constexpr Result kNotReady = 600;

  // CUdevice_attribute.
  static constexpr int kComputeCapabilityMajor = 75;
  static constexpr int kComputeCapabilityMinor = 76;

  // Does not wait for the legacy default stream.
  static constexpr unsigned kNonBlockingStream = 1;
  // Measures no time, and so costs less.
  static constexpr unsigned kUntimedEvent = 2;
};

}  // namespace lockstep
