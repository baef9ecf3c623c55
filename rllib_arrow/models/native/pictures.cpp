// Encoder and decoder: stages of a 4 x 4 convolution of stride 2 (down) or its
// transpose (up), a norm over channels and SiLU. Pictures are [rows, columns,
// channels].
//
// Few channels leave a library's convolutions mostly idle. Here each is one product of
// 4 x 4 patches, for a few pictures at a time, so that all in between stays in cache.

#include <tuple>

#include "norm.hpp"
#include "products.hpp"

namespace {

enum Kind : int64_t { NORM, DOWN, UP };  // NORM: of what comes in, alone

// The last stage has no norm, and `bias` is the bias of its convolution.
struct Stage {
  int64_t kind, side, inputs, outputs, is_normed;  // `side` of the smaller picture
  int64_t pixels_in() const { return side * side * (kind == DOWN ? 4 : 1); }
  int64_t pixels_out() const { return side * side * (kind == UP ? 4 : 1); }
};

struct Tensors {
  const float *weights, *norm, *bias;
};

struct Trace {
  float *before, *stats, *out;  // before the norm; mean and scale; after SiLU
};

struct Gradients {
  float *weights, *norm, *bias;
};

// A patch's row of RGB: by far the most frequent run of numbers.
constexpr int64_t COLOURS = 12;

template <class Function>
inline void each_number(int64_t count, Function f) {
  if (count == COLOURS)
    for (int64_t i = 0; i < COLOURS; ++i) f(i);
  else
    for (int64_t i = 0; i < count; ++i) f(i);
}

// Applies f(number in the patch, place in the picture, how many) to each patch's runs.
template <class Function>
void each_run(int64_t side, int64_t channels, Function f) {
  const int64_t large = 2 * side;
  for (int64_t i = 0; i < side; ++i)
    for (int64_t j = 0; j < side; ++j)
      for (int64_t k = 0; k < 4; ++k) {
        const int64_t y = 2 * i + k - 1, x = 2 * j - 1;
        if (y < 0 || y >= large) continue;
        const int64_t from = std::max<int64_t>(x, 0), to = std::min(x + 4, large);
        f(i * side + j, (4 * k + from - x) * channels, (y * large + from) * channels,
          (to - from) * channels);
      }
}

// Writes the patches of a picture of twice the side as rows; what is outside stays.
void gather(const float* picture, int64_t side, int64_t channels, Rows& patches,
            int64_t first) {
  each_run(side, channels, [&](int64_t row, int64_t at, int64_t place, int64_t count) {
    const float* __restrict from = picture + place;
    float* __restrict to = patches[first + row] + at;
    each_number(count, [=](int64_t i) { to[i] = from[i]; });
  });
}

// Adds patches to where they come from.
void scatter(Rows& patches, int64_t first, int64_t side, int64_t channels,
             float* picture) {
  each_run(side, channels, [&](int64_t row, int64_t at, int64_t place, int64_t count) {
    const float* __restrict from = patches[first + row] + at;
    float* __restrict to = picture + place;
    each_number(count, [=](int64_t i) { to[i] += from[i]; });
  });
}

// Pictures that are worked on together: enough rows to multiply with.
int64_t together(const Stage& stage) {
  return std::max<int64_t>(1, 96 / (stage.side * stage.side));
}

void clear(Rows& rows, int64_t count) {
  std::fill_n(rows[0], count * rows.stride, 0.0f);
}

struct Layer {
  Stage stage;
  Tensors tensors;
  Matrix patches_to_pixels, pixels_to_patches;

  // Weights are [outputs, 4, 4, inputs] on the way down, [inputs, 4, 4, outputs] up.
  Layer(Stage stage, Tensors tensors)
      : stage(stage),
        tensors(tensors),
        patches_to_pixels(stage.kind == NORM ? Matrix(0, 0)
                                             : forth(tensors.weights, few(), many())),
        pixels_to_patches(stage.kind == NORM ? Matrix(0, 0)
                                             : back(tensors.weights, few(), many())) {}

  // Channels of the smaller picture, and numbers of a patch of the larger one.
  int64_t few() const { return stage.kind == DOWN ? stage.outputs : stage.inputs; }
  int64_t many() const {
    return 16 * (stage.kind == DOWN ? stage.inputs : stage.outputs);
  }

  void forth_through(const float* in, const Trace& trace, int64_t from,
                     int64_t to) const {
    const int64_t pixels = stage.side * stage.side, C = stage.outputs;
    const int64_t in_size = stage.pixels_in() * stage.inputs;
    const int64_t out_size = stage.pixels_out() * C;
    const int64_t group = together(stage);
    Rows patches(group * pixels, many()), small(group * pixels, few());
    for (int64_t first = from; first < to; first += group) {
      const int64_t count = std::min(group, to - first), rows = count * pixels;
      if (stage.kind == DOWN) {
        for (int64_t n = 0; n < count; ++n)
          gather(in + (first + n) * in_size, stage.side, stage.inputs, patches,
                 n * pixels);
        clear(small, rows);
        add_product(patches, rows, patches_to_pixels, small);
        for (int64_t r = 0; r < rows; ++r)
          std::copy_n(small[r], C, trace.before + (first * pixels + r) * C);
      } else if (stage.kind == UP) {
        clear(patches, rows);
        add_product(in + first * in_size, stage.inputs, rows, pixels_to_patches,
                    patches);
        for (int64_t n = 0; n < count; ++n) {
          float* picture = trace.before + (first + n) * out_size;
          for (int64_t p = 0; p < stage.pixels_out(); ++p)
            if (stage.is_normed)
              std::fill_n(picture + p * C, C, 0.0f);
            else
              std::copy_n(tensors.bias, C, picture + p * C);
          scatter(patches, n * pixels, stage.side, C, picture);
        }
      }
      if (stage.is_normed)
        normalise(trace, first * stage.pixels_out(),
                  (first + count) * stage.pixels_out());
    }
  }

  void normalise(const Trace& trace, int64_t from, int64_t to) const {
    const Norm norm{tensors.norm, tensors.bias, stage.outputs};
    for (int64_t r = from; r < to; ++r)
      std::tie(trace.stats[2 * r], trace.stats[2 * r + 1]) = norm(
          trace.before + r * stage.outputs, nullptr, trace.out + r * stage.outputs);
  }

  // Turns the gradient of what comes out (in place: before the norm) into that of what
  // came in, if that is wanted, and adds to those of the weights.
  void back_through(const float* in, const Trace& trace, float* grad, float* grad_in,
                    Rows& to_weights, Rows& to_norm, int64_t from, int64_t to) const {
    const int64_t pixels = stage.side * stage.side, C = stage.outputs;
    const int64_t in_size = stage.pixels_in() * stage.inputs;
    const int64_t out_size = stage.pixels_out() * C, group = together(stage);
    Rows patches(group * pixels, many()), small(group * pixels, few());
    for (int64_t first = from; first < to; first += group) {
      const int64_t count = std::min(group, to - first), rows = count * pixels;
      denormalise(trace, grad, to_norm, first * stage.pixels_out(),
                  (first + count) * stage.pixels_out());
      const float* pictures = stage.kind == DOWN ? in : grad;
      const int64_t size = stage.kind == DOWN ? in_size : out_size;
      const float* pixel_rows =
          stage.kind == DOWN ? grad + first * out_size : in + first * in_size;
      if (stage.kind == NORM) continue;
      for (int64_t n = 0; n < count; ++n)
        gather(pictures + (first + n) * size, stage.side, many() / 16, patches,
               n * pixels);
      add_outer(pixel_rows, few(), few(), patches, rows, to_weights);
      if (!grad_in) continue;
      if (stage.kind == UP) {
        clear(small, rows);
        add_product(patches, rows, patches_to_pixels, small);
        for (int64_t r = 0; r < rows; ++r)
          std::copy_n(small[r], few(), grad_in + first * in_size + r * few());
      } else {
        clear(patches, rows);
        add_product(pixel_rows, few(), rows, pixels_to_patches, patches);
        std::fill_n(grad_in + first * in_size, count * in_size, 0.0f);
        for (int64_t n = 0; n < count; ++n)
          scatter(patches, n * pixels, stage.side, stage.inputs,
                  grad_in + (first + n) * in_size);
        clear(patches, rows);  // patches at the edge are not written whole
      }
    }
    if (stage.kind == NORM)
      std::copy(grad + from * in_size, grad + to * in_size, grad_in + from * in_size);
  }

  void denormalise(const Trace& trace, float* grad, Rows& sums, int64_t from,
                   int64_t to) const {
    const int64_t C = stage.outputs;
    if (!stage.is_normed) {
      for (int64_t r = from; r < to; ++r) add(grad + r * C, sums[1], C);
      return;
    }
    const Norm norm{tensors.norm, tensors.bias, C};
    std::vector<float> to_before(C);
    for (int64_t r = from; r < to; ++r) {
      const float *before = trace.before + r * C, mean = trace.stats[2 * r],
                  scale = trace.stats[2 * r + 1];
      float* to_normed = grad + r * C;
      norm.back(before, mean, scale, to_normed, to_before.data());
      by_register(C, [&](int64_t i, int64_t left) {
        const Vec part = load_some(to_normed + i, left);
        const Vec hat = (load_some(before + i, left) - mean) * scale;
        store(sums[0] + i, load(sums[0] + i) + part * hat);
        store(sums[1] + i, load(sums[1] + i) + part);
        store_some(to_normed + i, load_some(&to_before[i], left), left);
      });
    }
  }
};

std::vector<Layer> layers_of(const Stage* stages, int64_t count,
                             const Tensors* tensors) {
  std::vector<Layer> layers;
  for (int64_t i = 0; i < count; ++i) layers.emplace_back(stages[i], tensors[i]);
  return layers;
}

}  // namespace

extern "C" {

// Takes pictures (or what the decoder makes of states) through all stages.
void pictures_forth(const Stage* stages, int64_t count, const Tensors* tensors,
                    const float* in, int64_t pictures, const Trace* traces,
                    int64_t threads) {
  const auto layers = layers_of(stages, count, tensors);
  in_parts(pictures, threads, [&](int64_t from, int64_t to) {
    for (int64_t i = 0; i < count; ++i)
      layers[i].forth_through(i ? traces[i - 1].out : in, traces[i], from, to);
  });
}

// Goes back. `grads` has the gradients of what comes out of each stage, the last one
// given, all of them overwritten; `grad_in` may be null.
void pictures_back(const Stage* stages, int64_t count, const Tensors* tensors,
                   const float* in, int64_t pictures, const Trace* traces,
                   float* const* grads, float* grad_in, const Gradients* sums,
                   int64_t threads) {
  const auto layers = layers_of(stages, count, tensors);
  threads = std::max<int64_t>(1, std::min(threads, pictures));
  std::vector<std::vector<Rows>> found(threads);
  for (auto& rows : found)
    for (const Layer& layer : layers) {
      rows.emplace_back(layer.few(), layer.many());
      rows.emplace_back(2, layer.stage.outputs);
    }
  in_parts(threads, threads, [&](int64_t part, int64_t) {
    const int64_t from = pictures * part / threads,
                  to = pictures * (part + 1) / threads;
    for (int64_t i = count - 1; i >= 0; --i)
      layers[i].back_through(i ? traces[i - 1].out : in, traces[i], grads[i],
                             i ? grads[i - 1] : grad_in, found[part][2 * i],
                             found[part][2 * i + 1], from, to);
  });
  for (int64_t i = 0; i < count; ++i)
    for (auto& rows : found) {
      const Layer& layer = layers[i];
      if (sums[i].weights)
        for (int64_t r = 0; r < layer.few(); ++r)
          add(rows[2 * i][r], sums[i].weights + r * layer.many(), layer.many());
      if (sums[i].norm) add(rows[2 * i + 1][0], sums[i].norm, layer.stage.outputs);
      add(rows[2 * i + 1][1], sums[i].bias, layer.stage.outputs);
    }
}

}  // extern "C"
