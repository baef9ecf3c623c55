// The loop through sequences of rows, forth and back, as one call each. The arithmetic
// is that of `models/unroll.py`; tests hold the two against each other.
//
// A step of a small model is a dozen products of some ten rows, and costs more to call
// than to compute. Here weights are laid out for products once for all steps, and what
// lies between products is joined. Rows do not depend on each other, and no sum depends
// on how many there are: so neither the number of threads nor a row's neighbours change
// a result.

#include <tuple>

#include "networks.hpp"

namespace {

// The fields of `unroll.Weights`, of `unroll.Trace` and of `unroll.Back`, in their
// order.
enum {
  INPUT_Z,
  INPUT_NORM,
  INPUT_NORM_BIAS,
  GRU_X,
  GRU_H,
  GRU_X_BIAS,
  GRU_H_BIAS,
  POSTERIOR_H,
  POSTERIOR_NORM,
  POSTERIOR_NORM_BIAS,
  POSTERIOR_OUT,
  POSTERIOR_OUT_BIAS
};

enum {
  H_BEFORE,
  Z_BEFORE,
  X,
  X_MEAN,
  X_SCALE,
  X_NORMED,
  X_OUT,
  RESET,
  UPDATE,
  CANDIDATE,
  CANDIDATE_H,
  NEXT_H,
  Y,
  Y_MEAN,
  Y_SCALE,
  Y_NORMED,
  Y_OUT,
  SOFTMAX,
  NEXT_Z
};

enum { TO_X, TO_X_NORMED, TO_FROM_X, TO_FROM_H, TO_Y, TO_Y_NORMED, TO_LOGITS };

}  // namespace

extern "C" {

// Goes forth through sequences. Tensors are in the order of the arguments of
// `unroll.steps_forward`, those of `trace` in the order of `unroll.Trace`.
void unroll_forth(const Sizes* s, const float* const* weights, const float* const* in,
                  float* const* trace) {
  const Latents latents{s->groups, s->classes};
  const int64_t H = s->h, U = s->units, Z = latents.units(), B = s->rows;
  const Rows table = looked_up(weights[INPUT_Z], U, Z, Z, 0);
  const Norm x_norm{weights[INPUT_NORM], weights[INPUT_NORM_BIAS], U},
      y_norm{weights[POSTERIOR_NORM], weights[POSTERIOR_NORM_BIAS], U};
  const Matrix gru_x = forth(weights[GRU_X], 3 * H, U),
               gru_h = forth(weights[GRU_H], 3 * H, H);
  const GRU gru{gru_x, gru_h, weights[GRU_X_BIAS], weights[GRU_H_BIAS], H};
  const Matrix to_y = forth(weights[POSTERIOR_H], U, H),
               to_logits = forth(weights[POSTERIOR_OUT], Z, U);
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
        const float* h =
            t ? trace[NEXT_H] + (first - B + r) * H : first_h + (from + r) * H;
        const float* z =
            t ? trace[NEXT_Z] + (first - B + r) * Z : first_z + (from + r) * Z;
        float *h_before = at(H_BEFORE, r, H), *z_before = at(Z_BEFORE, r, Z),
              *x = at(X, r, U);
        for (int64_t i = 0; i < H; ++i) h_before[i] = h[i] * kept;
        for (int64_t i = 0; i < Z; ++i) z_before[i] = z[i] * kept;
        std::copy_n(action_parts + (first + r) * U, U, x);
        if (kept != 0.0f) latents.look_up(table, &ones[r * s->groups], x, U);
        std::tie(*at(X_MEAN, r, 1), *at(X_SCALE, r, 1)) =
            x_norm(x, at(X_NORMED, r, U), x_out[r]);
        std::copy_n(x_out[r], U, at(X_OUT, r, U));
      }
      gru.parts(x_out, at(H_BEFORE, 0, H), H, rows, by_x, by_h);
      for (int64_t r = 0; r < rows; ++r) {
        gru.close(by_x[r], by_h[r], at(H_BEFORE, r, H), at(NEXT_H, r, H));
        for (int gate = 0; gate < 3; ++gate)
          std::copy_n(by_x[r] + gate * H, H, at(RESET + gate, r, H));
        std::copy_n(by_h[r] + 2 * H, H, at(CANDIDATE_H, r, H));
        std::copy_n(image_parts + (first + r) * U, U, y[r]);
      }
      add_product(at(NEXT_H, 0, H), H, rows, to_y, y);
      for (int64_t r = 0; r < rows; ++r) {
        std::copy_n(y[r], U, at(Y, r, U));
        std::tie(*at(Y_MEAN, r, 1), *at(Y_SCALE, r, 1)) =
            y_norm(y[r], at(Y_NORMED, r, U), y_out[r]);
        std::copy_n(y_out[r], U, at(Y_OUT, r, U));
        std::copy_n(weights[POSTERIOR_OUT_BIAS], Z, logits[r]);
      }
      add_product(y_out, rows, to_logits, logits);
      for (int64_t r = 0; r < rows; ++r) {
        sample(latents, logits[r], noise + (first + r) * s->groups, at(NEXT_Z, r, Z),
               &ones[r * s->groups]);
        std::copy_n(logits[r], Z, at(SOFTMAX, r, Z));
      }
    }
  });
}

// Goes back. `in` holds the gradients of h and z after the last step, then what
// `unroll.steps_back` gets of every step; `out` the fields of `unroll.Back`.
void unroll_back(const Sizes* s, const float* const* weights, const float* const* in,
                 float* const* out) {
  const int64_t C = s->classes, H = s->h, U = s->units, Z = s->groups * C, B = s->rows;
  const Norm x_norm{weights[INPUT_NORM], weights[INPUT_NORM_BIAS], U},
      y_norm{weights[POSTERIOR_NORM], weights[POSTERIOR_NORM_BIAS], U};
  const Matrix input_z = back(weights[INPUT_Z], U, Z),
               gru_x = back(weights[GRU_X], 3 * H, U),
               gru_h = back(weights[GRU_H], 3 * H, H),
               posterior_h = back(weights[POSTERIOR_H], U, H),
               posterior_out = back(weights[POSTERIOR_OUT], Z, U);
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
          float* __restrict grad = dz[r] + g * C, along = 0.0f;
          const float* __restrict probs = at(SOFTMAX, r, Z) + g * C;
          for (int64_t i = 0; i < C; ++i) along += grad[i] * probs[i];
          for (int64_t i = 0; i < C; ++i)
            grad[i] = (1.0f - UNIMIX) * probs[i] * (grad[i] - along);
        }
        tell(TO_LOGITS, r, Z, dz[r]);
        std::fill_n(dy[r], U, 0.0f);
      }
      add_product(dz, rows, posterior_out, dy);
      for (int64_t r = 0; r < rows; ++r) {
        y_norm.back(at(Y, r, U), *at(Y_MEAN, r, 1), *at(Y_SCALE, r, 1), dy[r], y[r]);
        tell(TO_Y_NORMED, r, U, dy[r]);
        tell(TO_Y, r, U, y[r]);
        add(grad_h + (first + r) * H, dh[r], H);
      }
      add_product(y, rows, posterior_h, dh);
      for (int64_t r = 0; r < rows; ++r) {
        const float* __restrict h = at(H_BEFORE, r, H);
        const float* __restrict reset = at(RESET, r, H);
        const float* __restrict update = at(UPDATE, r, H);
        const float* __restrict candidate = at(CANDIDATE, r, H);
        const float* __restrict candidate_h = at(CANDIDATE_H, r, H);
        const float* __restrict grad = dh[r];
        float* __restrict to_x = by_x[r];
        float* __restrict to_h = by_h[r];
        float* __restrict rest = kept[r];
        for (int64_t i = 0; i < H; ++i) {
          rest[i] = grad[i] * update[i];
          const float to_candidate =
              (grad[i] - rest[i]) * (1.0f - candidate[i] * candidate[i]);
          to_x[i] = to_h[i] =
              to_candidate * candidate_h[i] * reset[i] * (1.0f - reset[i]);
          to_x[H + i] = to_h[H + i] =
              grad[i] * (h[i] - candidate[i]) * update[i] * (1.0f - update[i]);
          to_x[2 * H + i] = to_candidate;
          to_h[2 * H + i] = to_candidate * reset[i];
        }
        tell(TO_FROM_X, r, 3 * H, to_x);
        tell(TO_FROM_H, r, 3 * H, to_h);
        std::copy_n(rest, H, dh[r]);
        std::fill_n(dx[r], U, 0.0f);
        std::fill_n(dz[r], Z, 0.0f);
      }
      add_product(by_h, rows, gru_h, dh);
      add_product(by_x, rows, gru_x, dx);
      for (int64_t r = 0; r < rows; ++r) {
        x_norm.back(at(X, r, U), *at(X_MEAN, r, 1), *at(X_SCALE, r, 1), dx[r], x[r]);
        tell(TO_X_NORMED, r, U, dx[r]);
        tell(TO_X, r, U, x[r]);
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

}  // extern "C"
