#pragma once

#include <vector>

#include "common/metrics/histogram.h"
#include "common/metrics/metric_writer.h"
#include "frontend/access/access_control.h"
#include "frontend/discovery/discovery.h"
#include "frontend/generation/pipeline.h"
#include "frontend/http/server.h"
#include "frontend/ledger/request_ledger.h"
#include "frontend/openai/service.h"
#include "frontend/routing/group_set.h"
#include "tokenizer_service/caching/caching_tokenizer.h"

namespace lockstep {

// Every metric of the binary `gateway`: docs/metrics.md is this table in words.
// vLLM's names are the workers', so that a sum over all programs counts each
// token once.
std::vector<MetricInfo> GatewayMetrics();

// Where the values are; all may be read on any thread.
struct GatewayMeters {
  GroupSet* groups = nullptr;
  Pipeline* pipeline = nullptr;
  const AccessControl* access = nullptr;
  const RequestLedger* ledger = nullptr;
  const openai::Service* openai = nullptr;
  const Discovery* discovery = nullptr;     // null: there is none
  const http::Server* http = nullptr;       // null: there is none
  const Histogram* callback_lag = nullptr;  // of gRPC's; null: none is measured
};
void CollectGateway(const GatewayMeters& gateway, MetricWriter& writer);

// Those of the tokenizer, where it keeps what it has encoded.
void CollectTokenizerCache(const CachingTokenizer& tokenizer,
                           MetricWriter& writer);

}  // namespace lockstep
