// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/collectives/all_reduce.hpp>
#include <spark_comm/collectives/all_reduce_overlapped.hpp>
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/comm/detail/communicator_core.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/driver.hpp>
#include <spark_comm/cuda/event.hpp>
#include <spark_comm/cuda/stream.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/paths/detail/path_launch.hpp>
#include <spark_comm/paths/detail/path_set.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <cstddef>
#include <utility>

namespace spark_comm {

void overlapped_result::join(cuda::stream_ref s) const {
  // The record is what makes it waitable, and was made by whoever made this.
  const cuda::driver& driver = device_.loaded_driver();
  driver.check(driver.table().cuStreamWaitEvent(s.get(), end_.get(), 0), "cuStreamWaitEvent");
}

overlapped_result all_reduce_overlapped(communicator& comm,
                                        const void* in,
                                        void* out,
                                        std::size_t count_elements,
                                        data_type dtype,
                                        reduce_op op,
                                        cuda::stream_ref compute,
                                        const call_options& options) {
  detail::require_no_group(comm.core(), operation_kind::all_reduce);
  const cuda::stream& beside = detail::paths_of(comm.core()).next_own_stream();
  cuda::event begin = comm.device().create_event();
  begin.record(compute);
  beside.wait_for(begin);
  all_reduce(comm, in, out, count_elements, dtype, op, beside, options);
  cuda::event end = comm.device().create_event();
  end.record(beside);
  return overlapped_result{comm.device(), std::move(end)};
}

}  // namespace spark_comm
