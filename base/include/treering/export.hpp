#pragma once

/// Marks a namespace block whose names the shared library shows; all others are hidden in it.
#define TREERING_API [[gnu::visibility("default")]]
