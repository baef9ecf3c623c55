// The loop through dreams, as one call; see `sequences.cpp`. The arithmetic is that of
// `DV3RLModule.dream`.

#include "networks.hpp"

extern "C" {

// Dreams on from states[0]. Weights: the actor's as `Head` wants them; `input_z`,
// `input_a`, their norm and its bias; the GRU's four; the prior's layer, norm, norm's
// bias, output and its bias.
void dream(const Sizes* s, const float* const* weights, const float* noise,
           float* states, int64_t* actions) {
  const Latents latents{s->groups, s->classes};
  const int64_t H = s->h, U = s->units, Z = latents.units(), N = s->rows,
                A = s->actions;
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
        sample(latents, logits[r], uniform + r * (s->groups + 1) + 1,
               next + r * state + H, &ones[r * s->groups]);
    }
  });
}

}  // extern "C"
