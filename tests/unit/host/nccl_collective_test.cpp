// SPDX-License-Identifier: AGPL-3.0-only
// Every collective on ranks that are processes or threads: types, operations, placements, counts
// that fit no vector and no chunk, misaligned starts, and nothing written beside the result.
#include "nccl_rank.hpp"
#include "reference.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <ostream>
#include <random>
#include <string>
#include <vector>

namespace spark_comm::host_test {
namespace {

enum class placement : std::uint8_t { in_place, out_of_place };

// What one round of a collective is made of.
struct shape {
  data_type dtype = data_type::float32;
  reduce_op op = reduce_op::sum;
  std::size_t count = 0;  // of a block
  placement where = placement::out_of_place;
  std::size_t shift = 0;  // elements that the buffers start behind an aligned address
  int root = 0;
};

std::ostream& operator<<(std::ostream& out, const shape& s) {
  return out << name_of(s.dtype) << ' ' << name_of(s.op) << " count " << s.count
             << (s.where == placement::in_place ? " in place" : " out of place") << " shift "
             << s.shift << " root " << s.root;
}

// Elements between guards that must stay as they are.
template <typename T>
class guarded_buffer {
 public:
  guarded_buffer(std::size_t elements, std::size_t shift)
      : begin_(guard_elements + shift),
        elements_(elements),
        data_(elements + 2 * guard_elements + shift) {
    std::memset(static_cast<void*>(data_.data()), pattern, data_.size() * sizeof(T));
  }

  T* data() { return data_.data() + begin_; }

  T& operator[](std::size_t i) { return data_[begin_ + i]; }

  [[nodiscard]] bool are_guards_intact() const {
    const auto* bytes = reinterpret_cast<const unsigned char*>(data_.data());
    for (std::size_t i = 0; i < data_.size() * sizeof(T); ++i) {
      const std::size_t element = i / sizeof(T);
      if ((element < begin_ || element >= begin_ + elements_) && bytes[i] != pattern) {
        return false;
      }
    }
    return true;
  }

 private:
  static constexpr std::size_t guard_elements = 64;
  static constexpr unsigned char pattern = 0xa5;
  std::size_t begin_;
  std::size_t elements_;
  std::vector<T> data_;
};

template <typename T>
bool same_bits(const T& left, const T& right) {
  return std::memcmp(&left, &right, sizeof(T)) == 0;
}

// The buffers of one round, filled with this rank's samples.
template <typename T>
struct round_buffers {
  guarded_buffer<T> in;
  guarded_buffer<T> out;
  T* source;
  T* target;

  // `in_offset` and `out_offset` say where in-place operation has the one inside the other.
  round_buffers(const shape& s,
                int rank,
                std::size_t in_elements,
                std::size_t out_elements,
                std::size_t in_offset,
                std::size_t out_offset)
      : in(in_elements, s.shift), out(out_elements, s.shift) {
    const bool is_in_place = s.where == placement::in_place;
    source = is_in_place && in_elements <= out_elements ? out.data() + in_offset : in.data();
    target = is_in_place && in_elements > out_elements ? in.data() + out_offset : out.data();
    for (std::size_t i = 0; i < in_elements; ++i) {
      source[i] = sample<T>(rank, i);
    }
  }

  void check(const shape& s, std::size_t elements, const std::function<T(std::size_t)>& expected) {
    for (std::size_t i = 0; i < elements; ++i) {
      if (!same_bits(target[i], expected(i))) {
        ADD_FAILURE() << s << ": element " << i << " is wrong";
        break;
      }
    }
    EXPECT_TRUE(in.are_guards_intact() && out.are_guards_intact()) << s;
  }
};

template <typename T>
T reduced_sample(const joined_rank& me, reduce_op op, std::size_t index) {
  thread_local std::vector<T> values;
  values.clear();
  for (int rank = 0; rank < me.ranks(); ++rank) {
    values.push_back(sample<T>(rank, index));
  }
  return reduced(op, values);
}

template <typename T>
void all_reduce_round(joined_rank& me, const shape& s) {
  round_buffers<T> b{s, me.rank(), s.count, s.count, 0, 0};
  EXPECT_EQ(ncclAllReduce(b.source,
                          b.target,
                          s.count,
                          static_cast<int>(s.dtype),
                          static_cast<int>(s.op),
                          me.comm(),
                          me.stream()),
            0);
  me.synchronize();
  b.check(s, s.count, [&](std::size_t i) { return reduced_sample<T>(me, s.op, i); });
}

template <typename T>
void reduce_round(joined_rank& me, const shape& s) {
  round_buffers<T> b{s, me.rank(), s.count, s.count, 0, 0};
  EXPECT_EQ(ncclReduce(b.source,
                       b.target,
                       s.count,
                       static_cast<int>(s.dtype),
                       static_cast<int>(s.op),
                       s.root,
                       me.comm(),
                       me.stream()),
            0);
  me.synchronize();
  const std::size_t checked = me.rank() == s.root ? s.count : 0;
  b.check(s, checked, [&](std::size_t i) { return reduced_sample<T>(me, s.op, i); });
}

template <typename T>
void reduce_scatter_round(joined_rank& me, const shape& s) {
  const auto world = static_cast<std::size_t>(me.ranks());
  const std::size_t mine = static_cast<std::size_t>(me.rank()) * s.count;
  round_buffers<T> b{s, me.rank(), s.count * world, s.count, 0, mine};
  EXPECT_EQ(ncclReduceScatter(b.source,
                              b.target,
                              s.count,
                              static_cast<int>(s.dtype),
                              static_cast<int>(s.op),
                              me.comm(),
                              me.stream()),
            0);
  me.synchronize();
  b.check(s, s.count, [&](std::size_t i) { return reduced_sample<T>(me, s.op, mine + i); });
}

template <typename T>
void broadcast_round(joined_rank& me, const shape& s) {
  round_buffers<T> b{s, me.rank(), s.count, s.count, 0, 0};
  EXPECT_EQ(
      ncclBroadcast(
          b.source, b.target, s.count, static_cast<int>(s.dtype), s.root, me.comm(), me.stream()),
      0);
  me.synchronize();
  b.check(s, s.count, [&](std::size_t i) { return sample<T>(s.root, i); });
}

template <typename T>
void all_gather_round(joined_rank& me, const shape& s) {
  const auto world = static_cast<std::size_t>(me.ranks());
  const std::size_t mine = static_cast<std::size_t>(me.rank()) * s.count;
  round_buffers<T> b{s, me.rank(), s.count, s.count * world, mine, 0};
  EXPECT_EQ(
      ncclAllGather(b.source, b.target, s.count, static_cast<int>(s.dtype), me.comm(), me.stream()),
      0);
  me.synchronize();
  b.check(s, s.count * world, [&](std::size_t i) {
    return sample<T>(static_cast<int>(i / s.count), i % s.count);
  });
}

template <typename T>
void all_to_all_round(joined_rank& me, const shape& s) {
  const auto world = static_cast<std::size_t>(me.ranks());
  const std::size_t mine = static_cast<std::size_t>(me.rank()) * s.count;
  round_buffers<T> b{s, me.rank(), s.count * world, s.count * world, 0, 0};
  EXPECT_EQ(
      ncclAlltoAll(b.source, b.target, s.count, static_cast<int>(s.dtype), me.comm(), me.stream()),
      0);
  me.synchronize();
  b.check(s, s.count * world, [&](std::size_t i) {
    return sample<T>(static_cast<int>(i / s.count), mine + i % s.count);
  });
}

template <typename T>
void gather_round(joined_rank& me, const shape& s) {
  const auto world = static_cast<std::size_t>(me.ranks());
  const bool is_root = me.rank() == s.root;
  const std::size_t mine = static_cast<std::size_t>(s.root) * s.count;
  shape own = s;
  own.where = is_root ? s.where : placement::out_of_place;
  round_buffers<T> b{own, me.rank(), s.count, is_root ? s.count * world : 0, mine, 0};
  EXPECT_EQ(
      ncclGather(
          b.source, b.target, s.count, static_cast<int>(s.dtype), s.root, me.comm(), me.stream()),
      0);
  me.synchronize();
  b.check(s, is_root ? s.count * world : 0, [&](std::size_t i) {
    return sample<T>(static_cast<int>(i / s.count), i % s.count);
  });
}

template <typename T>
void scatter_round(joined_rank& me, const shape& s) {
  const auto world = static_cast<std::size_t>(me.ranks());
  const bool is_root = me.rank() == s.root;
  const std::size_t mine = static_cast<std::size_t>(me.rank()) * s.count;
  shape own = s;
  own.where = is_root && world > 1 ? s.where : placement::out_of_place;
  round_buffers<T> b{own, me.rank(), is_root ? s.count * world : 0, s.count, 0, mine};
  EXPECT_EQ(
      ncclScatter(
          b.source, b.target, s.count, static_cast<int>(s.dtype), s.root, me.comm(), me.stream()),
      0);
  me.synchronize();
  b.check(s, s.count, [&](std::size_t i) { return sample<T>(s.root, mine + i); });
}

// Each rank sends to the next one and receives from the one before, itself included.
template <typename T>
void ring_round(joined_rank& me, const shape& s) {
  const int next = (me.rank() + 1) % me.ranks();
  const int before = (me.rank() + me.ranks() - 1) % me.ranks();
  shape own = s;
  own.where = placement::out_of_place;
  round_buffers<T> b{own, me.rank(), s.count, s.count, 0, 0};
  EXPECT_EQ(ncclGroupStart(), 0);
  EXPECT_EQ(ncclSend(b.source, s.count, static_cast<int>(s.dtype), next, me.comm(), me.stream()),
            0);
  EXPECT_EQ(ncclRecv(b.target, s.count, static_cast<int>(s.dtype), before, me.comm(), me.stream()),
            0);
  EXPECT_EQ(ncclGroupEnd(), 0);
  me.synchronize();
  b.check(own, s.count, [&](std::size_t i) { return sample<T>(before, i); });
}

template <typename T>
void reducing_rounds(joined_rank& me, const shape& s) {
  all_reduce_round<T>(me, s);
  reduce_round<T>(me, s);
  reduce_scatter_round<T>(me, s);
}

template <typename T>
void moving_rounds(joined_rank& me, const shape& s) {
  broadcast_round<T>(me, s);
  all_gather_round<T>(me, s);
  all_to_all_round<T>(me, s);
  gather_round<T>(me, s);
  scatter_round<T>(me, s);
  ring_round<T>(me, s);
}

void all_rounds(joined_rank& me, shape s) {
  s.root %= me.ranks();
  with_type(s.dtype, [&]<typename T>() {
    for (const reduce_op op : all_reduce_ops) {
      s.op = op;
      reducing_rounds<T>(me, s);
    }
    moving_rounds<T>(me, s);
  });
}

void every_type(joined_rank& me) {
  for (const data_type dtype : all_data_types) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{3}, std::size_t{17}}) {
      all_rounds(me, {.dtype = dtype, .count = count, .where = placement::in_place, .root = 1});
      all_rounds(me, {.dtype = dtype, .count = count, .shift = 1, .root = 2});
    }
    all_rounds(me, {.dtype = dtype, .count = 4097, .where = placement::in_place, .shift = 3});
  }
}

// Around the sizes of slots, parts and channels, where pieces begin and end.
void every_boundary(joined_rank& me) {
  constexpr std::size_t slot = std::size_t{128} * 1024 / sizeof(float);
  const std::size_t part = slot / static_cast<std::size_t>(me.ranks());
  const int root = 3 % me.ranks();
  for (const std::size_t edge : {part, slot / 4, slot / 2, slot}) {
    for (const std::size_t count : {edge - 1, edge, edge + 1}) {
      const shape s{.count = count, .where = placement::in_place, .shift = 1, .root = root};
      all_reduce_round<float>(me, s);
      broadcast_round<float>(me, s);
      if (edge < slot / 2) {
        reduce_scatter_round<float>(me, s);
        moving_rounds<float>(me, s);
      }
    }
  }
  // More pieces than a ring has slots.
  const shape longest{.count = 9 * slot + 1, .shift = 1, .root = root};
  all_reduce_round<float>(me, longest);
  broadcast_round<float>(me, longest);
  ring_round<float>(me, longest);
}

// Sizes from one element to a few slots, the same on all ranks, without a pause in between.
void random_sizes(joined_rank& me) {
  std::mt19937 random{20};  // NOLINT(cert-msc51-cpp): the same on all ranks
  for (int round = 0; round < 200; ++round) {
    const std::size_t count = 1 + random() % (std::size_t{1} << (1 + random() % 14));
    shape s{.dtype = data_type::bfloat16,
            .count = count,
            .where = random() % 2 == 0 ? placement::in_place : placement::out_of_place,
            .shift = random() % 5,
            .root = static_cast<int>(random() % static_cast<unsigned int>(me.ranks()))};
    switch (random() % 4) {
      case 0:  all_reduce_round<bfloat16>(me, s); break;
      case 1:  reduce_scatter_round<bfloat16>(me, s); break;
      case 2:  ring_round<bfloat16>(me, s); break;
      default: broadcast_round<bfloat16>(me, s); break;
    }
  }
}

class nccl_collective : public testing::TestWithParam<int> {
 protected:
  void expect_in_processes(void (*body)(joined_rank&)) {
    const nccl_id id = make_id();
    // Much work for a debug build on a busy machine; below the limit of the test runner.
    constexpr std::chrono::seconds limit{100};
    const auto run = [&](int rank) {
      joined_rank me{GetParam(), id, rank};
      body(me);
    };
    expect_all_succeeded(run_rank_processes(GetParam(), run, limit));
  }
};

TEST_P(nccl_collective, is_exact_in_every_type) {
  expect_in_processes(every_type);
}

TEST_P(nccl_collective, is_exact_at_every_boundary) {
  expect_in_processes(every_boundary);
}

TEST_P(nccl_collective, is_exact_in_random_sizes) {
  expect_in_processes(random_sizes);
}

INSTANTIATE_TEST_SUITE_P(worlds,
                         nccl_collective,
                         testing::Values(1, 2, 3, 4, 8),
                         [](const auto& param) { return "of_" + std::to_string(param.param); });

}  // namespace
}  // namespace spark_comm::host_test
