#pragma once

#include <crypt.h>
#include <string.h>
