// A step of Adam on all tensors of a network, its gradient clipped by the global norm.

#include "vectors.hpp"

extern "C" {

struct Adam {
  double learning_rate, beta1, beta2, eps, limit;
};

// Tensors come in fives: weights, gradient, mean, mean of squares, and the steps taken.
// Tells the gradient's norm before clipping, and leaves the gradient clipped.
void adam_step(const Adam* adam, float* const* tensors, const int64_t* lengths,
               int64_t count, float* told) {
  double squares = 0.0;
  for (int64_t t = 0; t < count; ++t) {
    const float* grad = tensors[5 * t + 1];
    // A sum of some thousand squares at a time loses no digits that matter.
    for (int64_t first = 0; first < lengths[t]; first += 4096) {
      Vec sum{};
      by_register(std::min<int64_t>(4096, lengths[t] - first),
                  [&](int64_t i, int64_t left) {
                    const Vec part = load_some(grad + first + i, left);
                    sum += part * part;
                  });
      squares += total(sum);
    }
  }
  const double norm = *told = std::sqrt(squares);
  // As torch clips: by limit / (norm + 1e-6), if that is below 1.
  const float share = std::min(1.0, adam->limit / (norm + 1e-6));
  const float take1 = 1.0 - adam->beta1, take2 = 1.0 - adam->beta2, eps = adam->eps;
  const float keep2 = adam->beta2;
  for (int64_t t = 0; t < count; ++t) {
    float *const *five = tensors + 5 * t, *weights = five[0], *mean = five[2],
                 *variance = five[3];
    const float step = *five[4] += 1.0f;
    const float rate = adam->learning_rate / (1.0 - std::pow(adam->beta1, step));
    const float unbias = 1.0 / std::sqrt(1.0 - std::pow(adam->beta2, step));
    float* grad = five[1];
    by_register(lengths[t], [&](int64_t i, int64_t left) {
      const Vec g = load_some(grad + i, left) * share;
      if (share < 1.0f) store_some(grad + i, g, left);
      Vec m = load_some(mean + i, left), v = load_some(variance + i, left);
      m += (g - m) * take1;
      v = v * keep2 + g * g * take2;
      const Vec w = load_some(weights + i, left) - rate * m / (root(v) * unbias + eps);
      store_some(mean + i, m, left);
      store_some(variance + i, v, left);
      store_some(weights + i, w, left);
    });
  }
}

}  // extern "C"
