#include "CEmbeddedFiles.h"

#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char gateway[] = {
#embed "../../Server/Gateway/Edge/OpenAPI/openapi.json"
};
const wakegate_embedded_file wakegate_gateway_openapi = {"openapi.json", gateway, sizeof gateway};

static const unsigned char transfers[] = {
#embed "../../Transfers/TransferAgent/OpenAPI/openapi.json"
};
const wakegate_embedded_file wakegate_transfers_openapi = {"openapi.json", transfers, sizeof transfers};
