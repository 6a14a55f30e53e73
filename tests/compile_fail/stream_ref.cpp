// SPDX-License-Identifier: AGPL-3.0-only
// A stream comes from a stream: 0 and null would quietly be the default stream.
#include <spark_comm/cuda/stream_ref.hpp>

using spark_comm::cuda::stream_ref;

void fragment(CUstream_st* native, CUevent_st* event) {
  const stream_ref borrowed = native;
  const stream_ref named = stream_ref::default_stream();
  static_cast<void>(borrowed);
  static_cast<void>(named);
  static_cast<void>(event);
#ifdef CASE_from_zero
  const stream_ref made = 0;
#endif
#ifdef CASE_from_null
  const stream_ref made = nullptr;
#endif
#ifdef CASE_from_number
  const stream_ref made{1234UL};
#endif
#ifdef CASE_from_event
  const stream_ref made = event;
#endif
}
