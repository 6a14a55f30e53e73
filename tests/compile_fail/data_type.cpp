// SPDX-License-Identifier: AGPL-3.0-only
// Element types are those that have a defined meaning; a span of const memory is no output.
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/device_span.hpp>

using spark_comm::data_type_of;
using spark_comm::device_span;

void fragment(device_span<float> span, device_span<const float> const_span) {
  const auto known = data_type_of<float>;
  const device_span<const float> input = span;
  static_cast<void>(known);
  static_cast<void>(input);
  static_cast<void>(const_span);
#ifdef CASE_bool
  const auto made = data_type_of<bool>;
#endif
#ifdef CASE_char16
  const auto made = data_type_of<char16_t>;
#endif
#ifdef CASE_pointer
  const auto made = data_type_of<float*>;
#endif
#ifdef CASE_const_span_to_mutable
  const device_span<float> made = const_span;
#endif
#ifdef CASE_number
  const spark_comm::data_type made = 7;
#endif
}
