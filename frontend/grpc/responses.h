#pragma once

#include "frontend/generation/response_sink.h"
#include "proto/inference.pb.h"

namespace lockstep {

// In the trailers of an answer that other groups went on with: how many were
// lost in the midst of it.
inline constexpr char kFailoversTrailer[] = "lockstep-failovers";

// The events of an answer as messages of lockstep.v1.Inference.
v1::GenerateResponse ToResponse(AcceptedEvent event);
v1::GenerateResponse ToResponse(DeltaEvent event);
v1::GenerateResponse ToResponse(FinishEvent event);
v1::GenerateResponse ToResponse(SummaryEvent event);

}  // namespace lockstep
