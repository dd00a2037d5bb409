// swift-tools-version: 6.2
import PackageDescription

/// The language settings of every Swift target.
let swiftSettings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),  // SE-0335
    .enableUpcomingFeature("InternalImportsByDefault"),  // SE-0409
    .enableUpcomingFeature("MemberImportVisibility"),  // SE-0444
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),  // SE-0461
    .strictMemorySafety(),  // SE-0458
    .treatAllWarnings(as: .error),
    // Dynamic exclusivity checks cost a twentieth of a push; debug builds and the tests keep them.
    .unsafeFlags(["-enforce-exclusivity=unchecked"], .when(configuration: .release)),
]

/// The settings of the layer Core. The tests run its code most of the time, so debug builds optimize it, too, and keep
/// all checks. This shortens the tests by more than it lengthens the build.
let coreSettings: [SwiftSetting] = [.unsafeFlags(["-O", "-assert-config", "Debug"], .when(configuration: .debug))]

/// The settings of the modules that a push passes through. Without them a push has 8 % more instructions, most of them
/// for calls between small functions.
let pushSettings: [SwiftSetting] = [
    .unsafeFlags(
        ["-Xllvm", "-inline-threshold=1000", "-Xllvm", "-sil-inline-removed-call-benefit=100"],
        .when(configuration: .release)
    )
]
let pushModules: Set = ["Engine", "Gateway", "HTTPTransport", "Platform", "Policy", "Storage", "Wire"]

/// A module of `Sources/LAYER/NAME`.
func module(
    _ name: String,
    in layer: String,
    _ dependencies: [Target.Dependency] = [],
    exclude: [String] = []
) -> Target {
    .target(
        name: name,
        dependencies: dependencies,
        path: "Sources/\(layer)/\(name)",
        exclude: exclude,
        swiftSettings: swiftSettings + (layer == "Core" ? coreSettings : [])
            + (pushModules.contains(name) ? pushSettings : [])
    )
}

/// A program of `Sources/LAYER/NAME`.
func program(_ name: String, in layer: String, _ dependencies: [Target.Dependency]) -> Target {
    .executableTarget(
        name: name,
        dependencies: dependencies,
        path: "Sources/\(layer)/\(name)",
        swiftSettings: swiftSettings
    )
}

/// The tests of `Tests/LAYER/NAME`, or of `Tests/NAME` without a layer.
func tests(
    _ name: String,
    in layer: String? = nil,
    _ dependencies: [Target.Dependency] = [],
    exclude: [String] = []
) -> Target {
    .testTarget(
        name: name,
        dependencies: dependencies,
        path: layer.map { "Tests/\($0)/\(name)" } ?? "Tests/\(name)",
        exclude: exclude,
        swiftSettings: swiftSettings
    )
}

/// A C library of the system, with the Debian package that has it.
func library(_ name: String, pkgConfig: String? = nil, apt package: String? = nil) -> Target {
    .systemLibrary(
        name: name,
        path: "Sources/Libraries/\(name)",
        pkgConfig: pkgConfig,
        providers: package.map { [.apt([$0])] }
    )
}

let fuzzDependencies: [Target.Dependency] = [
    "CNghttp2", "CommandLineTool", "Engine", "Gateway", "HTTPClient", "HTTPTransport", "Policy",
    "Storage",
    "WakeWorker", "Wire",
]

/// The fuzz targets: in every build the tests that replay what fuzzing found, and for `deploy/fuzz`, which sets the
/// variable and the sanitizers, the program that libFuzzer drives instead.
let fuzzTests: Target =
    if Context.environment["WAKEGATE_FUZZ"] == nil {
        tests("FuzzTests", fuzzDependencies, exclude: ["Corpus", "Crashers", "Driver"])
    } else {
        .executableTarget(
            name: "wakegate-fuzz",
            dependencies: fuzzDependencies,
            path: "Tests/FuzzTests",
            exclude: ["Corpus", "Crashers", "Replay"],
            swiftSettings: swiftSettings
        )
    }

/// The calls that lead to `CSystemFaults` in the tests' program, where they may fail on command.
let systemFaults = [
    "accept4", "bind", "clock_gettime", "close", "epoll_create1", "epoll_ctl", "epoll_wait",
    "eventfd", "eventfd_read", "fsync",
    "link", "listen", "poll", "pthread_create", "recv", "renameat2", "send", "setsockopt", "shutdown",
    "socket",
    "SSL_do_handshake", "SSL_new", "SSL_read", "SSL_write",
]

let libraries: [Target] = [
    library("CNghttp2", pkgConfig: "libnghttp2", apt: "libnghttp2-dev"),
    library("COpenSSL", pkgConfig: "openssl", apt: "libssl-dev"),
    library("CLibcurl", pkgConfig: "libcurl", apt: "libcurl4-openssl-dev"),
    library("CSQLite", pkgConfig: "sqlite3", apt: "libsqlite3-dev"),
    library("CPostgreSQL", pkgConfig: "libpq", apt: "libpq-dev"),
    library("CXXHash", pkgConfig: "libxxhash", apt: "libxxhash-dev"),
    library("CSystemBus", pkgConfig: "libsystemd", apt: "libsystemd-dev"),
    library("CSystemd", pkgConfig: "libsystemd", apt: "libsystemd-dev"),
    library("CFiles"),
    library("CLinux"),
    library("CNetlink"),
    library("CThreads"),
    .target(name: "CProcess", path: "Sources/Libraries/CProcess"),
    .target(name: "CStreamEnds", dependencies: ["CNghttp2"], path: "Sources/Libraries/CStreamEnds"),
    .target(name: "CEmbeddedFiles", path: "Sources/Libraries/CEmbeddedFiles"),
    // `deploy/build` sets the variable: git cannot be asked here, as SwiftPM does not read the manifest again for each
    // commit.
    .target(
        name: "CCommit",
        path: "Sources/Libraries/CCommit",
        cSettings: [
            .define("WAKEGATE_COMMIT", to: "\"\(Context.environment["WAKEGATE_COMMIT"] ?? "")\"")
        ]
    ),
]

/// Values and state machines: no I/O and no clock.
let core: [Target] = [
    module("Wire", in: "Core"),
    module("Policy", in: "Core", ["Wire"]),
    module("Engine", in: "Core", ["Policy", "Wire"]),
]

/// The machine that WakeGate runs on, storage, HTTP, and the gateway.
let server: [Target] = [
    module("Platform", in: "Server", ["CFiles", "CThreads", "Wire"]),
    module("LinuxConditions", in: "Server", ["CNetlink", "CSystemBus", "Platform"]),
    module("ServiceManager", in: "Server", ["CSystemd", "Platform", "Wire"]),
    module("Storage", in: "Server", ["CSQLite", "CXXHash", "Engine", "Platform", "Policy", "Wire"]),
    module("HTTPTransport", in: "Server", ["CLinux", "CNghttp2", "COpenSSL", "Platform", "Wire"]),
    module("HTTPClient", in: "Server", ["CLibcurl", "CStreamEnds", "Platform", "Wire"]),
    module(
        "Gateway",
        in: "Server",
        [
            "CCommit", "CEmbeddedFiles", "Engine", "HTTPClient", "HTTPTransport", "Platform", "Policy",
            "ServiceManager", "Storage", "Wire",
        ],
        exclude: ["Edge/Dashboard", "Edge/OpenAPI"]
    ),
]

/// The state of several gateways in PostgreSQL.
let cluster: [Target] = [
    module(
        "PostgresStore",
        in: "Cluster",
        ["CLinux", "CPostgreSQL", "Engine", "Platform", "Policy", "Storage", "Wire"]
    )
]

/// The agent for background transfers.
let transfers: [Target] = [
    module(
        "TransferAgent",
        in: "Transfers",
        [
            "CEmbeddedFiles", "Engine", "HTTPClient", "HTTPTransport", "LinuxConditions", "Platform", "Policy",
            "ServiceManager", "Storage", "Wire",
        ],
        exclude: ["OpenAPI"]
    )
]

/// The libraries of workers: the only modules with a public interface, and without any part of the server.
let sdk: [Target] = [
    module("WakeWorker", in: "SDK", ["HTTPClient", "LinuxConditions", "Platform", "Wire"]),
    module("BackgroundTransfers", in: "SDK", ["HTTPClient", "Platform", "Wire"]),
    module("WakeWorkerTesting", in: "SDK", ["WakeWorker", "Wire"]),
]

/// The program.
let tools: [Target] = [
    module(
        "CommandLineTool",
        in: "Tools",
        [
            "BackgroundTransfers", "CProcess", "HTTPClient", "Platform", "Policy", "WakeWorker", "Wire",
        ]
    ),
    program(
        "wakegate",
        in: "Tools",
        [
            "CommandLineTool", "Engine", "Gateway", "HTTPTransport", "Platform", "Policy", "PostgresStore",
            "ServiceManager", "Storage", "TransferAgent", "Wire",
        ]
    ),
]

/// The programs that `deploy/bench` and the budgets measure.
let measurements: [Target] = [
    program("wakegate-memory", in: "Measurements", ["Engine", "Platform", "Policy", "Wire"]),
    program("wakegate-workers", in: "Measurements", ["HTTPClient", "Platform", "WakeWorker"]),
]

let testKit: [Target] = [
    .target(
        name: "CSimulatedDisk",
        dependencies: ["CSQLite"],
        path: "Sources/Testing/CSimulatedDisk",
        linkerSettings: [.linkedLibrary("sqlite3")]
    ),
    .target(
        name: "CSystemFaults",
        dependencies: ["COpenSSL"],
        path: "Sources/Testing/CSystemFaults",
        linkerSettings: [
            .linkedLibrary("ssl"), .linkedLibrary("crypto"),
            .unsafeFlags(systemFaults.flatMap { ["-Xlinker", "--wrap=\($0)"] }),
        ]
    ),
    module(
        "WakeGateTestKit",
        in: "Testing",
        ["CSimulatedDisk", "CSystemFaults", "Engine", "Platform", "Policy", "Storage", "Wire"]
    ),
]

let unitTests: [Target] = [
    tests("APNSProtocolTests", in: "Core", ["Wire"]),
    tests("BytesTests", in: "Core", ["WakeGateTestKit", "Wire"]),
    tests("FaultInjectionTests", in: "Core", ["Wire"]),
    tests("LaunchPolicyTests", in: "Core", ["Policy", "Wire"]),
    tests(
        "SimulationTests",
        in: "Core",
        ["Policy", "WakeGateTestKit"],
        exclude: ["BackgroundVectors", "Vectors"]
    ),
    tests("TextTests", in: "Core", ["Wire"]),
    tests("TransferPolicyTests", in: "Transfers", ["TransferAgent"]),
    tests("WakeFormatTests", in: "Core", ["Wire"]),
    tests("DeviceEngineTests", in: "Core", ["Engine", "Policy", "WakeGateTestKit", "Wire"]),
    tests("WakeDispatchTests", in: "Core", ["Engine", "Policy", "WakeGateTestKit", "Wire"]),
    tests(
        "DeviceJournalTests",
        in: "Server",
        ["Engine", "Storage", "WakeGateTestKit", "Wire"]
    ),
    tests("HTTPClientTests", in: "Server", ["HTTPClient", "Platform", "WakeGateTestKit", "Wire"]),
    tests(
        "HTTPTransportTests",
        in: "Server",
        ["CNghttp2", "COpenSSL", "HTTPTransport", "Platform", "WakeGateTestKit", "Wire"]
    ),
    tests(
        "HistoryTests",
        in: "Server",
        ["Engine", "Policy", "Storage", "WakeGateTestKit", "Wire"]
    ),
    tests("LinuxConditionsTests", in: "Server", ["LinuxConditions", "WakeGateTestKit"]),
    tests("PlatformTests", in: "Server", ["Platform", "WakeGateTestKit", "Wire"]),
    tests(
        "PostgreSQLTests",
        in: "Cluster",
        ["Engine", "Platform", "PostgresStore", "WakeGateTestKit", "Wire"]
    ),
    tests(
        "PostgresStoreTests",
        in: "Cluster",
        ["Engine", "Platform", "Policy", "PostgresStore", "WakeGateTestKit", "Wire"]
    ),
    tests("SQLiteTests", in: "Server", ["Storage", "WakeGateTestKit", "Wire"]),
    tests("ServiceManagerTests", in: "Server", ["ServiceManager"]),
    tests(
        "BackgroundTransfersTests",
        in: "SDK",
        ["BackgroundTransfers", "WakeGateTestKit", "WakeWorker", "Wire"]
    ),
    tests(
        "WakeWorkerTests",
        in: "SDK",
        [
            "BackgroundTransfers", "HTTPClient", "Platform", "WakeGateTestKit", "WakeWorker", "WakeWorkerTesting",
            "Wire",
        ]
    ),
    tests(
        "EdgeTests",
        in: "Server",
        [
            "Engine", "Gateway", "HTTPClient", "HTTPTransport", "Platform", "ServiceManager", "Storage",
            "WakeGateTestKit",
            "Wire",
        ]
    ),
    tests(
        "GatewayConfigurationTests",
        in: "Server",
        ["Engine", "Gateway", "HTTPTransport", "Platform", "Policy", "ServiceManager", "WakeGateTestKit", "Wire"]
    ),
    tests("GatewayCredentialTests", in: "Server", ["Gateway", "Platform"]),
    tests(
        "GatewayEngineTests",
        in: "Server",
        [
            "Engine", "Gateway", "HTTPTransport", "Platform", "Policy", "Storage", "WakeGateTestKit", "Wire",
        ]
    ),
    tests("GatewayFaultTests", in: "Server", ["Gateway", "HTTPTransport", "Wire"]),
    tests("GatewayProviderTests", in: "Server", ["Gateway", "HTTPTransport", "Wire"]),
    tests(
        "GatewayWebhookTests",
        in: "Server",
        ["Engine", "Gateway", "HTTPClient", "Policy", "WakeGateTestKit", "Wire"]
    ),
    tests(
        "TransferAgentTests",
        in: "Transfers",
        [
            "Engine", "HTTPClient", "HTTPTransport", "Platform", "ServiceManager", "Storage", "TransferAgent",
            "WakeGateTestKit", "Wire",
        ]
    ),
    tests(
        "CommandLineToolTests",
        in: "Tools",
        ["BackgroundTransfers", "CommandLineTool", "Gateway", "HTTPClient", "Policy", "WakeWorker", "Wire", "wakegate"]
    ),
]

/// The tests of the whole.
let wholeTests: [Target] = [
    tests("TidyTests"),
    // Depends on the programs so that they are built next to the tests.
    tests(
        "EndToEndTests",
        ["BackgroundTransfers", "WakeGateTestKit", "Wire", "wakegate", "wakegate-workers"],
        exclude: ["Clients", "FormerStates"]
    ),
    fuzzTests,
]

let package = Package(
    name: "WakeGate",
    products: [
        .executable(name: "wakegate", targets: ["wakegate"]),
        .library(name: "WakeWorker", targets: ["WakeWorker"]),
        .library(name: "WakeWorkerTesting", targets: ["WakeWorkerTesting"]),
        .library(name: "BackgroundTransfers", targets: ["BackgroundTransfers"]),
    ],
    targets: libraries + core + server + cluster + transfers + sdk + tools + measurements + testKit
        + unitTests + wholeTests,
    swiftLanguageModes: [.v6]
)
