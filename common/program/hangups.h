#pragma once

namespace lockstep {

// SIGHUP asks a program to open its log anew, or to read again what it was told
// by files. Several parts may listen, so it is counted and each compares.
//
//   CountHangups();             // once, in main or by whoever listens
//   if (NumHangups() != seen_)  // now and then

// From here on SIGHUP ends the process no more. Any number of times.
void CountHangups();

// Any thread.
int NumHangups();

}  // namespace lockstep
