// SPDX-License-Identifier: AGPL-3.0-only
// The operations: numbers become enumerations, and the rest is the library's.
#include <spark_comm/c/collectives.h>
#include <spark_comm/c/detail/boundary.hpp>
#include <spark_comm/c/detail/handles.hpp>
#include <spark_comm/c/types.h>
#include <spark_comm/collectives/all_gather.hpp>
#include <spark_comm/collectives/all_reduce.hpp>
#include <spark_comm/collectives/all_reduce_overlapped.hpp>
#include <spark_comm/collectives/all_reduce_rms_norm.hpp>
#include <spark_comm/collectives/all_to_all.hpp>
#include <spark_comm/collectives/barrier.hpp>
#include <spark_comm/collectives/broadcast.hpp>
#include <spark_comm/collectives/recv.hpp>
#include <spark_comm/collectives/reduce.hpp>
#include <spark_comm/collectives/reduce_scatter.hpp>
#include <spark_comm/collectives/send.hpp>
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/comm/options.hpp>
#include <spark_comm/comm/rank_id.hpp>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/reduce_op.hpp>
#include <spark_comm/core/time.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace {

using spark_comm::rank_id;
using spark_comm::c::arguments;
using spark_comm::c::created;
using spark_comm::c::guarded;

spark_comm::communicator& comm_of(const arguments& check, spark_comm_communicator* given) {
  return check.deref(given, "the communicator").value;
}

spark_comm::data_type type_of(const arguments& check, spark_comm_data_type dtype) {
  return check.member_of(spark_comm::all_data_types, dtype, "data type");
}

spark_comm::reduce_op op_of(const arguments& check, spark_comm_reduce_op op) {
  return check.member_of(spark_comm::all_reduce_ops, op, "reduce operation");
}

spark_comm::call_options options_of(const arguments& check, const spark_comm_call_options* given) {
  const spark_comm_call_options known = check.read(given);
  if (known.deadline_ns == 0) {
    return {};
  }
  return {.deadline = check.limit(known.deadline_ns, "deadline_ns")};
}

}  // namespace

spark_comm_code spark_comm_all_reduce(spark_comm_communicator* communicator,
                                      const void* in,
                                      void* out,
                                      std::size_t count_elements,
                                      spark_comm_data_type dtype,
                                      spark_comm_reduce_op op,
                                      spark_comm_native_stream stream,
                                      const spark_comm_call_options* options,
                                      spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const arguments& check) {
    all_reduce(comm_of(check, communicator),
               in,
               out,
               count_elements,
               type_of(check, dtype),
               op_of(check, op),
               stream,
               options_of(check, options));
  });
}

spark_comm_code spark_comm_reduce(spark_comm_communicator* communicator,
                                  const void* in,
                                  void* out,
                                  std::size_t count_elements,
                                  spark_comm_data_type dtype,
                                  spark_comm_reduce_op op,
                                  std::int32_t root,
                                  spark_comm_native_stream stream,
                                  const spark_comm_call_options* options,
                                  spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const arguments& check) {
    reduce(comm_of(check, communicator),
           in,
           out,
           count_elements,
           type_of(check, dtype),
           op_of(check, op),
           rank_id{root},
           stream,
           options_of(check, options));
  });
}

spark_comm_code spark_comm_broadcast(spark_comm_communicator* communicator,
                                     const void* in,
                                     void* out,
                                     std::size_t count_elements,
                                     spark_comm_data_type dtype,
                                     std::int32_t root,
                                     spark_comm_native_stream stream,
                                     const spark_comm_call_options* options,
                                     spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const arguments& check) {
    broadcast(comm_of(check, communicator),
              in,
              out,
              count_elements,
              type_of(check, dtype),
              rank_id{root},
              stream,
              options_of(check, options));
  });
}

spark_comm_code spark_comm_all_gather(spark_comm_communicator* communicator,
                                      const void* in,
                                      void* out,
                                      std::size_t count_elements,
                                      spark_comm_data_type dtype,
                                      spark_comm_native_stream stream,
                                      const spark_comm_call_options* options,
                                      spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const arguments& check) {
    all_gather(comm_of(check, communicator),
               in,
               out,
               count_elements,
               type_of(check, dtype),
               stream,
               options_of(check, options));
  });
}

spark_comm_code spark_comm_reduce_scatter(spark_comm_communicator* communicator,
                                          const void* in,
                                          void* out,
                                          std::size_t count_elements,
                                          spark_comm_data_type dtype,
                                          spark_comm_reduce_op op,
                                          spark_comm_native_stream stream,
                                          const spark_comm_call_options* options,
                                          spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const arguments& check) {
    reduce_scatter(comm_of(check, communicator),
                   in,
                   out,
                   count_elements,
                   type_of(check, dtype),
                   op_of(check, op),
                   stream,
                   options_of(check, options));
  });
}

spark_comm_code spark_comm_send(spark_comm_communicator* communicator,
                                const void* in,
                                std::size_t count_elements,
                                spark_comm_data_type dtype,
                                std::int32_t peer,
                                spark_comm_native_stream stream,
                                const spark_comm_call_options* options,
                                spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const arguments& check) {
    send(comm_of(check, communicator),
         in,
         count_elements,
         type_of(check, dtype),
         rank_id{peer},
         stream,
         options_of(check, options));
  });
}

spark_comm_code spark_comm_recv(spark_comm_communicator* communicator,
                                void* out,
                                std::size_t count_elements,
                                spark_comm_data_type dtype,
                                std::int32_t peer,
                                spark_comm_native_stream stream,
                                const spark_comm_call_options* options,
                                spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const arguments& check) {
    recv(comm_of(check, communicator),
         out,
         count_elements,
         type_of(check, dtype),
         rank_id{peer},
         stream,
         options_of(check, options));
  });
}

spark_comm_code spark_comm_all_to_all(spark_comm_communicator* communicator,
                                      const void* in,
                                      void* out,
                                      std::size_t count_elements,
                                      spark_comm_data_type dtype,
                                      spark_comm_native_stream stream,
                                      const spark_comm_call_options* options,
                                      spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const arguments& check) {
    all_to_all(comm_of(check, communicator),
               in,
               out,
               count_elements,
               type_of(check, dtype),
               stream,
               options_of(check, options));
  });
}

spark_comm_code spark_comm_all_to_all_counts(spark_comm_communicator* communicator,
                                             const void* in,
                                             void* out,
                                             const spark_comm_all_to_all_layout* layout,
                                             spark_comm_data_type dtype,
                                             spark_comm_native_stream stream,
                                             const spark_comm_call_options* options,
                                             spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const arguments& check) {
    spark_comm::communicator& comm = comm_of(check, communicator);
    const auto known = check.read(&check.deref(layout, "layout"));
    const auto list = [&](const std::size_t* first, const char* name) {
      return std::span{&check.deref(first, name), static_cast<std::size_t>(comm.world_size())};
    };
    all_to_all(comm,
               in,
               out,
               {.send_counts = list(known.send_counts, "send_counts"),
                .send_offsets = list(known.send_offsets, "send_offsets"),
                .recv_counts = list(known.recv_counts, "recv_counts"),
                .recv_offsets = list(known.recv_offsets, "recv_offsets")},
               type_of(check, dtype),
               stream,
               options_of(check, options));
  });
}

spark_comm_code spark_comm_barrier(spark_comm_communicator* communicator,
                                   std::int64_t limit_ns,
                                   spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const arguments& check) {
    barrier(comm_of(check, communicator), check.limit(limit_ns, "limit_ns"));
  });
}

spark_comm_code spark_comm_all_reduce_rms_norm(spark_comm_communicator* communicator,
                                               const spark_comm_rms_norm_arguments* what,
                                               spark_comm_native_stream stream,
                                               const spark_comm_call_options* options,
                                               spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const arguments& check) {
    const auto known = check.read(&check.deref(what, "what"));
    all_reduce_rms_norm(comm_of(check, communicator),
                        {.dtype = type_of(check, known.dtype),
                         .partial = known.partial,
                         .residual = known.residual,
                         .weight = known.weight,
                         .out = known.out,
                         .scales = known.scales,
                         .rows = known.rows,
                         .hidden = known.hidden,
                         .epsilon = known.epsilon},
                        stream,
                        options_of(check, options));
  });
}

spark_comm_code spark_comm_all_reduce_overlapped(spark_comm_communicator* communicator,
                                                 const void* in,
                                                 void* out,
                                                 std::size_t count_elements,
                                                 spark_comm_data_type dtype,
                                                 spark_comm_reduce_op op,
                                                 spark_comm_native_stream compute,
                                                 const spark_comm_call_options* options,
                                                 spark_comm_overlapped** result,
                                                 spark_comm_error** failure) {
  return created(__func__, result, failure, [&](const arguments& check) {
    return all_reduce_overlapped(comm_of(check, communicator),
                                 in,
                                 out,
                                 count_elements,
                                 type_of(check, dtype),
                                 op_of(check, op),
                                 compute,
                                 options_of(check, options));
  });
}

spark_comm_code spark_comm_overlapped_join(const spark_comm_overlapped* result,
                                           spark_comm_native_stream stream,
                                           spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const arguments& check) {
    check.deref(result, "the result").value.join(stream);
  });
}

spark_comm_code spark_comm_overlapped_poll(const spark_comm_overlapped* result,
                                           spark_comm_progress* progress,
                                           spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const arguments& check) {
    spark_comm_progress& answer = check.deref(progress, "progress");
    answer = SPARK_COMM_PENDING;
    answer = spark_comm::c::number_of(check.deref(result, "the result").value.poll());
  });
}

void spark_comm_overlapped_destroy(spark_comm_overlapped* result) {
  delete result;
}
