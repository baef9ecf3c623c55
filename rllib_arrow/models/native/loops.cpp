// The two loops of an update in which one step waits for the other: through sequences
// of rows, forth and back, and through dreams. The arithmetic is that of
// `models/unroll.py` and of `DV3RLModule.dream`; tests hold them against each other.
//
// A step of a small model is a dozen products of some ten rows, and costs more to call
// than to compute. Here a loop is one call, weights are laid out for products once for
// all of its steps, and what lies between products is joined. Rows do not depend on
// each other, and no sum depends on how many there are: so neither the number of
// threads nor a row's neighbours change a result.

#include <tuple>

#include "heads.hpp"

namespace {

constexpr float UNIMIX = 0.01f;

void softmax(float* numbers, int64_t count) {
  float most = numbers[0];
  if (count % LANES == 0) {
    Vec vec = load(numbers);
    by_register(count, [&](int64_t i, int64_t) {
      const Vec other = load(numbers + i);
      vec = other > vec ? other : vec;
    });
    most = largest(vec);
  } else {
    for (int64_t i = 1; i < count; ++i) most = std::max(most, numbers[i]);
  }
  Vec sum{};
  by_register(count, [&](int64_t i, int64_t left) {
    store_some(numbers + i, exponential(load_some(numbers + i, left) - most), left);
    sum += load_some(numbers + i, left);
  });
  const float share = 1.0f / total(sum);
  map([=](Vec vec) { return vec * share; }, numbers, numbers, count);
}

// Adds to each number of a register those before it.
inline Vec upto(Vec vec) {
#if defined(__AVX512F__)
  const __m512i none = _mm512_setzero_si512();
  vec += (Vec)_mm512_alignr_epi32((__m512i)vec, none, 15);
  vec += (Vec)_mm512_alignr_epi32((__m512i)vec, none, 14);
  vec += (Vec)_mm512_alignr_epi32((__m512i)vec, none, 12);
  vec += (Vec)_mm512_alignr_epi32((__m512i)vec, none, 8);
#else
  for (int i = 1; i < LANES; ++i) vec[i] += vec[i - 1];
#endif
  return vec;
}

// How many numbers of a register are not above a limit.
inline int64_t count_upto(Vec vec, float limit) {
#if defined(__AVX512F__)
  return __builtin_popcount(
      _mm512_cmp_ps_mask((__m512)vec, _mm512_set1_ps(limit), _CMP_LE_OQ));
#else
  int64_t count = 0;
  for (int i = 0; i < LANES; ++i) count += vec[i] <= limit;
  return count;
#endif
}

// Draws a class from a softmax with 1 % of uniform mixed in, as `sample_index` does.
int64_t draw(const float* softmax, int64_t classes, float uniform) {
  const float floor = UNIMIX / classes;
  float before = 0.0f;
  int64_t below = 0;
  by_register(classes, [&](int64_t i, int64_t left) {
    const Vec probs = load_some(softmax + i, left) * (1.0f - UNIMIX) + floor;
    const Vec sums = upto(probs) + before;
    below += count_upto(sums, uniform);
    before = sums[LANES - 1];
  });
  return std::min(below, classes - 1);
}

// Draws z from logits, which become probabilities without the uniform part.
void sample(const Latents& latents, float* logits, const float* uniform, float* z,
            int64_t* ones) {
  const int64_t classes = latents.classes;
  std::fill(z, z + latents.units(), 0.0f);
  for (int64_t g = 0; g < latents.groups; ++g) {
    softmax(logits + g * classes, classes);
    ones[g] = g * classes + draw(logits + g * classes, classes, uniform[g]);
    z[ones[g]] = 1.0f;
  }
}

struct GRU {
  const Matrix &from_x, &from_h;
  const float *x_bias, *h_bias;
  int64_t units;

  // Gives both parts of the gates, before they meet: [reset, update, candidate].
  void parts(Rows& x, const float* h, int64_t h_stride, int64_t rows, Rows& by_x,
             Rows& by_h) const {
    for (int64_t r = 0; r < rows; ++r) {
      std::copy(x_bias, x_bias + 3 * units, by_x[r]);
      std::copy(h_bias, h_bias + 3 * units, by_h[r]);
    }
    add_product(x, rows, from_x, by_x);
    add_product(h, h_stride, rows, from_h, by_h);
  }

  // Turns a row's parts into gates and candidate (in `by_x`); writes the next h.
  void close(float* __restrict by_x, const float* __restrict by_h,
             const float* __restrict h, float* __restrict next) const {
    add(by_h, by_x, 2 * units);
    map([](Vec v) { return sigmoid(v); }, by_x, by_x, 2 * units);
    float* candidate = by_x + 2 * units;
    for (int64_t i = 0; i < units; ++i) candidate[i] += by_x[i] * by_h[2 * units + i];
    map([](Vec v) { return tanh(v); }, candidate, candidate, units);
    for (int64_t i = 0; i < units; ++i)
      next[i] = candidate[i] + by_x[units + i] * (h[i] - candidate[i]);
  }
};

}  // namespace

extern "C" {

struct Sizes {
  int64_t steps, rows, groups, classes, h, units, actions, actor_layers, threads;
};

// Goes forth through sequences. Tensors are in the order of the arguments of
// `unroll.steps_forward`, those of `trace` in the order of `unroll.Trace`.
void unroll_forth(const Sizes* s, const float* const* weights, const float* const* in,
                  float* const* trace) {
  const Latents latents{s->groups, s->classes};
  const int64_t H = s->h, U = s->units, Z = latents.units(), B = s->rows;
  const Rows table = looked_up(weights[0], U, Z, Z, 0);
  const Norm x_norm{weights[1], weights[2], U}, y_norm{weights[8], weights[9], U};
  const Matrix gru_x = forth(weights[3], 3 * H, U), gru_h = forth(weights[4], 3 * H, H);
  const GRU gru{gru_x, gru_h, weights[5], weights[6], H};
  const Matrix to_y = forth(weights[7], U, H), to_logits = forth(weights[10], Z, U);
  const float *first_h = in[0], *first_z = in[1], *keep = in[2], *action_parts = in[3],
              *image_parts = in[4], *noise = in[5];

  in_parts(B, s->threads, [&](int64_t from, int64_t to) {
    const int64_t rows = to - from;
    Rows x_out(rows, U), by_x(rows, 3 * H), by_h(rows, 3 * H), y(rows, U),
        y_out(rows, U), logits(rows, Z);
    std::vector<int64_t> ones(rows * s->groups);
    for (int64_t r = 0; r < rows; ++r)
      latents.find(first_z + (from + r) * Z, &ones[r * s->groups]);
    for (int64_t t = 0; t < s->steps; ++t) {
      const int64_t first = t * B + from;
      const auto at = [&](int part, int64_t r, int64_t units) {
        return trace[part] + (first + r) * units;
      };
      for (int64_t r = 0; r < rows; ++r) {
        const float kept = keep[first + r];
        const float* h = t ? trace[11] + (first - B + r) * H : first_h + (from + r) * H;
        const float* z = t ? trace[18] + (first - B + r) * Z : first_z + (from + r) * Z;
        float *h_before = at(0, r, H), *z_before = at(1, r, Z), *x = at(2, r, U);
        for (int64_t i = 0; i < H; ++i) h_before[i] = h[i] * kept;
        for (int64_t i = 0; i < Z; ++i) z_before[i] = z[i] * kept;
        std::copy_n(action_parts + (first + r) * U, U, x);
        if (kept != 0.0f) latents.look_up(table, &ones[r * s->groups], x, U);
        std::tie(*at(3, r, 1), *at(4, r, 1)) = x_norm(x, at(5, r, U), x_out[r]);
        std::copy_n(x_out[r], U, at(6, r, U));
      }
      gru.parts(x_out, at(0, 0, H), H, rows, by_x, by_h);
      for (int64_t r = 0; r < rows; ++r) {
        gru.close(by_x[r], by_h[r], at(0, r, H), at(11, r, H));
        for (int gate = 0; gate < 3; ++gate)
          std::copy_n(by_x[r] + gate * H, H, at(7 + gate, r, H));
        std::copy_n(by_h[r] + 2 * H, H, at(10, r, H));
        std::copy_n(image_parts + (first + r) * U, U, y[r]);
      }
      add_product(at(11, 0, H), H, rows, to_y, y);
      for (int64_t r = 0; r < rows; ++r) {
        std::copy_n(y[r], U, at(12, r, U));
        std::tie(*at(13, r, 1), *at(14, r, 1)) = y_norm(y[r], at(15, r, U), y_out[r]);
        std::copy_n(y_out[r], U, at(16, r, U));
        std::copy_n(weights[11], Z, logits[r]);
      }
      add_product(y_out, rows, to_logits, logits);
      for (int64_t r = 0; r < rows; ++r) {
        sample(latents, logits[r], noise + (first + r) * s->groups, at(18, r, Z),
                       &ones[r * s->groups]);
        std::copy_n(logits[r], Z, at(17, r, Z));
      }
    }
  });
}

// Goes back. `in` holds the gradients of h and z after the last step, then what
// `unroll.steps_back` gets of every step; `out` the fields of `unroll.Back`.
void unroll_back(const Sizes* s, const float* const* weights, const float* const* in,
                 float* const* out) {
  const int64_t C = s->classes, H = s->h, U = s->units, Z = s->groups * C, B = s->rows;
  const Norm x_norm{weights[1], weights[2], U}, y_norm{weights[8], weights[9], U};
  const Matrix input_z = back(weights[0], U, Z), gru_x = back(weights[3], 3 * H, U),
               gru_h = back(weights[4], 3 * H, H), posterior_h = back(weights[7], U, H),
               posterior_out = back(weights[10], Z, U);
  const float *keep = in[2], *grad_h = in[3], *grad_probs = in[4];
  const float* const* trace = in + 5;

  in_parts(B, s->threads, [&](int64_t from, int64_t to) {
    const int64_t rows = to - from;
    Rows dh(rows, H), dz(rows, Z), dy(rows, U), y(rows, U), by_x(rows, 3 * H),
        by_h(rows, 3 * H), dx(rows, U), x(rows, U), kept(rows, H);
    for (int64_t r = 0; r < rows; ++r) {
      std::copy_n(in[0] + (from + r) * H, H, dh[r]);
      std::copy_n(in[1] + (from + r) * Z, Z, dz[r]);
    }
    for (int64_t t = s->steps - 1; t >= 0; --t) {
      const int64_t first = t * B + from;
      const auto at = [&](int part, int64_t r, int64_t units) {
        return trace[part] + (first + r) * units;
      };
      const auto tell = [&](int part, int64_t r, int64_t units, const float* numbers) {
        std::copy_n(numbers, units, out[part] + (first + r) * units);
      };
      for (int64_t r = 0; r < rows; ++r) {
        // Through the draw, the uniform part and the softmax.
        add(grad_probs + (first + r) * Z, dz[r], Z);
        for (int64_t g = 0; g < s->groups; ++g) {
          float *__restrict grad = dz[r] + g * C, along = 0.0f;
          const float* __restrict probs = at(17, r, Z) + g * C;
#pragma omp simd reduction(+ : along)
          for (int64_t i = 0; i < C; ++i) along += grad[i] * probs[i];
          for (int64_t i = 0; i < C; ++i)
            grad[i] = (1.0f - UNIMIX) * probs[i] * (grad[i] - along);
        }
        tell(6, r, Z, dz[r]);
        std::fill_n(dy[r], U, 0.0f);
      }
      add_product(dz, rows, posterior_out, dy);
      for (int64_t r = 0; r < rows; ++r) {
        y_norm.back(at(12, r, U), *at(13, r, 1), *at(14, r, 1), dy[r], y[r]);
        tell(5, r, U, dy[r]);
        tell(4, r, U, y[r]);
        add(grad_h + (first + r) * H, dh[r], H);
      }
      add_product(y, rows, posterior_h, dh);
      for (int64_t r = 0; r < rows; ++r) {
        const float *__restrict h = at(0, r, H), *__restrict reset = at(7, r, H),
                    *__restrict update = at(8, r, H), *__restrict candidate = at(9, r, H),
                    *__restrict candidate_h = at(10, r, H), *__restrict grad = dh[r];
        float *__restrict to_x = by_x[r], *__restrict to_h = by_h[r],
              *__restrict rest = kept[r];
        for (int64_t i = 0; i < H; ++i) {
          rest[i] = grad[i] * update[i];
          const float to_candidate =
              (grad[i] - rest[i]) * (1.0f - candidate[i] * candidate[i]);
          to_x[i] = to_h[i] = to_candidate * candidate_h[i] * reset[i] * (1.0f - reset[i]);
          to_x[H + i] = to_h[H + i] =
              grad[i] * (h[i] - candidate[i]) * update[i] * (1.0f - update[i]);
          to_x[2 * H + i] = to_candidate;
          to_h[2 * H + i] = to_candidate * reset[i];
        }
        tell(2, r, 3 * H, to_x);
        tell(3, r, 3 * H, to_h);
        std::copy_n(rest, H, dh[r]);
        std::fill_n(dx[r], U, 0.0f);
        std::fill_n(dz[r], Z, 0.0f);
      }
      add_product(by_h, rows, gru_h, dh);
      add_product(by_x, rows, gru_x, dx);
      for (int64_t r = 0; r < rows; ++r) {
        x_norm.back(at(2, r, U), *at(3, r, 1), *at(4, r, 1), dx[r], x[r]);
        tell(1, r, U, dx[r]);
        tell(0, r, U, x[r]);
      }
      add_product(x, rows, input_z, dz);
      for (int64_t r = 0; r < rows; ++r) {
        const float keeps = keep[first + r];
        for (int64_t i = 0; i < H; ++i) dh[r][i] *= keeps;
        for (int64_t i = 0; i < Z; ++i) dz[r][i] *= keeps;
      }
    }
  });
}

// Dreams on from states[0]. Weights: the actor's as `Head` wants them; `input_z`,
// `input_a`, their norm and its bias; the GRU's four; the prior's layer, norm, norm's
// bias, output and its bias.
void dream(const Sizes* s, const float* const* weights, const float* noise,
           float* states, int64_t* actions) {
  const Latents latents{s->groups, s->classes};
  const int64_t H = s->h, U = s->units, Z = latents.units(), N = s->rows, A = s->actions;
  const int64_t state = H + Z;
  const Head actor(weights, latents, H, U, s->actor_layers, A);
  weights += 3 * s->actor_layers + 2;
  const float* input_a = weights[1];
  const Rows input_z = looked_up(weights[0], U, Z, Z, 0);
  const Norm x_norm{weights[2], weights[3], U}, y_norm{weights[9], weights[10], U};
  const Matrix gru_x = forth(weights[4], 3 * H, U), gru_h = forth(weights[5], 3 * H, H);
  const GRU gru{gru_x, gru_h, weights[6], weights[7], H};
  const Matrix to_y = forth(weights[8], U, H), to_logits = forth(weights[11], Z, U);
  const float* logits_bias = weights[12];

  in_parts(N, s->threads, [&](int64_t from, int64_t to) {
    const int64_t rows = to - from;
    Rows a(rows, U), b(rows, U), choice(rows, A), by_x(rows, 3 * H), by_h(rows, 3 * H),
        logits(rows, Z);
    std::vector<int64_t> ones(rows * s->groups);
    for (int64_t r = 0; r < rows; ++r)
      latents.find(states + (from + r) * state + H, &ones[r * s->groups]);
    for (int64_t t = 0; t < s->steps; ++t) {
      const float* now = states + (t * N + from) * state;
      float* next = states + ((t + 1) * N + from) * state;
      const float* uniform = noise + (t * N + from) * (s->groups + 1);
      // The actor acts, and the recurrence goes a step.
      actor(now, rows, ones.data(), a, b, choice);
      for (int64_t r = 0; r < rows; ++r) {
        softmax(choice[r], A);
        const int64_t action = draw(choice[r], A, uniform[r * (s->groups + 1)]);
        actions[t * N + from + r] = action;
        std::copy_n(input_a + action * U, U, a[r]);
        latents.look_up(input_z, &ones[r * s->groups], a[r], U);
        x_norm(a[r], nullptr, a[r]);
      }
      gru.parts(a, now, state, rows, by_x, by_h);
      // The prior says what is seen.
      for (int64_t r = 0; r < rows; ++r) {
        gru.close(by_x[r], by_h[r], now + r * state, next + r * state);
        std::fill_n(a[r], U, 0.0f);
      }
      add_product(next, state, rows, to_y, a);
      for (int64_t r = 0; r < rows; ++r) {
        y_norm(a[r], nullptr, a[r]);
        std::copy_n(logits_bias, Z, logits[r]);
      }
      add_product(a, rows, to_logits, logits);
      for (int64_t r = 0; r < rows; ++r)
        sample(latents, logits[r], uniform + r * (s->groups + 1) + 1, next + r * state + H,
               &ones[r * s->groups]);
    }
  });
}

}  // extern "C"
