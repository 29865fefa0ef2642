#pragma once

// How a test drives the fake driver, beside CUDA's own symbols. C, so that a
// loaded library's can be found by name.
extern "C" {

// From its `nth` call on (1 is the next) `call`, such as "cuMemAlloc_v2",
// returns `code`; 0 ends it. An empty name: every call.
void FakeCudaFail(const char* call, int nth, int code);

// The call that was the first to fail so; "" if none has yet.
const char* FakeCudaFailed();

// Puts a launch on a stream, as "cuLaunchKernel": `kernel` is run, once, with
// `data` and returns 0 or the error that every call after it has. Where this
// returns an error `kernel` is not run.
int FakeCudaLaunch(void* stream, int (*kernel)(void* data), void* data);

// Work on a stream takes a random time of up to `most_us`; 0: none.
void FakeCudaDelay(unsigned seed, int most_us);

// Lets work wait (1) until it may run (0).
void FakeCudaHold(int hold);

// What the machine has.
void FakeCudaMachine(int devices, int driver_version, long long memory_bytes);

// From now on the communicator of `rank` has an asynchronous error; 0 ends it.
void FakeNcclError(int rank, int code);

// Calls `touches` with `data` on the stream's thread each time that a call of
// NCCL's is about to read or write a tensor; null ends it. `touches` makes no
// call of the driver.
void FakeNcclTouches(void (*touches)(void* data), void* data);

// Undoes all of the above.
void FakeCudaReset();

// Contexts, streams, events, communicators and allocations that are alive.
int FakeCudaAlive();
}
