// The host library's end of the process server (process/server.cpp): starting it, asking it, noticing its death.
#pragma once

#include <cstdint>

#include "../shared/messages.h"

// Sends a message, with a file descriptor beside it if `file` is not -1. Starts the server if there is none. Returns
// whether it has been sent; if not, it has said why on stderr.
bool ask_server(const shared::Message &message, int file = -1);

// Whether this process started the server, and is no child that a fork left with its parent's DPUs.
bool server_is_ours();

// Whether the server has died: then all DPU processes have died with it.
bool server_died();
