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
        swiftSettings: swiftSettings
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
    exclude: [String] = [],
    resources: [Resource]? = nil
) -> Target {
    .testTarget(
        name: name,
        dependencies: dependencies,
        path: layer.map { "Tests/\($0)/\(name)" } ?? "Tests/\(name)",
        exclude: exclude,
        resources: resources,
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
    "APNSProtocol", "Access", "Answers", "Bytes", "CNghttp2", "CommandLineTool", "DeviceEngine", "DeviceJournal",
    "Edge", "EngineRoom", "Gateway", "HTTPClient", "HTTPTransport", "History", "LaunchPolicy", "SQLite", "Settings",
    "Simulation", "Text", "WakeDispatch", "WakeFormat", "WakeWorker",
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
    "accept4", "bind", "clock_gettime", "close", "epoll_create1", "epoll_ctl", "epoll_wait", "eventfd", "eventfd_read",
    "link", "listen", "poll", "pthread_create", "recv", "renameat2", "send", "setsockopt", "shutdown", "socket",
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
        cSettings: [.define("WAKEGATE_COMMIT", to: "\"\(Context.environment["WAKEGATE_COMMIT"] ?? "")\"")]
    ),
]

/// Values and state machines: no I/O and no clock. Those of `Pure` use the standard library alone.
let cores: [Target] = [
    module("Bytes", in: "Pure"),
    module("Text", in: "Pure"),
    module("LaunchPolicy", in: "Pure"),
    module("TransferPolicy", in: "Pure"),
    module("APNSProtocol", in: "Pure", ["Bytes", "Text"]),
    module("FaultInjection", in: "Pure", ["APNSProtocol", "Bytes"]),
    module("WakeFormat", in: "Pure", ["Bytes", "Text"]),
    module("Simulation", in: "Pure", ["Bytes", "LaunchPolicy", "Text"]),
    module("DeviceEngine", in: "Engines", ["Bytes", "LaunchPolicy"]),
    module("WakeDispatch", in: "Engines", ["Bytes", "DeviceEngine", "LaunchPolicy"]),
    module("ClusterStore", in: "Engines", ["Bytes", "DeviceEngine", "LaunchPolicy"]),
]

/// Storage, sockets, HTTP, and the machine that WakeGate runs on.
let drivers: [Target] = [
    module("SQLite", in: "Drivers", ["Bytes", "CSQLite"]),
    module("DeviceJournal", in: "Drivers", ["Bytes", "CXXHash", "DeviceEngine", "Platform", "SQLite"]),
    module("History", in: "Drivers", ["Bytes", "DeviceEngine", "LaunchPolicy", "Platform", "SQLite"]),
    module("PostgreSQL", in: "Drivers", ["Bytes", "CLinux", "CPostgreSQL", "Platform"]),
    module(
        "PostgresStore",
        in: "Drivers",
        [
            "Bytes", "ClusterStore", "DeviceEngine", "History", "LaunchPolicy", "Platform", "PostgreSQL",
        ]
    ),
    module("Platform", in: "Drivers", ["Bytes", "CFiles", "CThreads"]),
    module("HTTPTransport", in: "Drivers", ["Bytes", "CLinux", "CNghttp2", "COpenSSL", "Platform"]),
    module("HTTPClient", in: "Drivers", ["Bytes", "CLibcurl", "CStreamEnds", "Platform"]),
    module("LinuxConditions", in: "Drivers", ["CNetlink", "CSystemBus", "Platform"]),
    module("ServiceManager", in: "Drivers", ["CSystemd"]),
]

/// The libraries of workers: the only modules with a public interface, and without any part of the server.
let sdk: [Target] = [
    module("WakeWorker", in: "SDK", ["HTTPClient", "LinuxConditions", "Platform", "Text", "WakeFormat"]),
    module("BackgroundTransfers", in: "SDK", ["HTTPClient", "Platform", "Text"]),
]

/// The server, the agent for background transfers, and the program.
let server: [Target] = [
    module("EventLog", in: "Gateway", ["Bytes", "Platform", "ServiceManager", "Text"]),
    module("Answers", in: "Gateway", ["Bytes", "DeviceEngine", "FaultInjection", "Text"]),
    module(
        "Access",
        in: "Gateway",
        [
            "APNSProtocol", "Answers", "Bytes", "DeviceEngine", "HTTPTransport", "Platform", "Text",
        ]
    ),
    module(
        "Settings",
        in: "Gateway",
        [
            "APNSProtocol", "Access", "Answers", "Bytes", "CCommit", "DeviceEngine", "EventLog", "FaultInjection",
            "HTTPClient", "HTTPTransport", "History", "LaunchPolicy", "Platform", "ServiceManager", "Text",
            "WakeDispatch",
        ]
    ),
    module(
        "EngineRoom",
        in: "Gateway",
        [
            "APNSProtocol", "Access", "Answers", "Bytes", "ClusterStore", "DeviceEngine", "DeviceJournal",
            "EventLog", "HTTPTransport", "History", "LaunchPolicy", "Platform", "Settings", "Simulation", "Text",
            "WakeDispatch", "WakeFormat",
        ]
    ),
    module(
        "Webhooks",
        in: "Gateway",
        [
            "Access", "Bytes", "DeviceEngine", "EngineRoom", "EventLog", "HTTPClient", "HTTPTransport",
            "LaunchPolicy", "Platform", "Settings", "Text", "WakeDispatch", "WakeFormat",
        ]
    ),
    module(
        "Edge",
        in: "Gateway",
        [
            "APNSProtocol", "Access", "Answers", "Bytes", "CEmbeddedFiles", "DeviceEngine", "EngineRoom", "EventLog",
            "FaultInjection", "HTTPTransport", "LaunchPolicy", "Platform", "Settings", "Text", "WakeDispatch",
            "WakeFormat",
        ],
        exclude: ["Dashboard", "OpenAPI"]
    ),
    module(
        "Gateway",
        in: "Gateway",
        [
            "APNSProtocol", "Access", "Answers", "Bytes", "ClusterStore", "DeviceEngine", "DeviceJournal", "Edge",
            "EngineRoom", "EventLog", "HTTPClient", "HTTPTransport", "History", "Platform", "PostgresStore",
            "ServiceManager", "Settings", "Text", "WakeDispatch", "Webhooks",
        ]
    ),
    module(
        "TransferAgent",
        in: "Agent",
        [
            "Bytes", "CEmbeddedFiles", "DeviceEngine", "EventLog", "HTTPClient", "HTTPTransport", "LaunchPolicy",
            "LinuxConditions", "Platform", "SQLite", "ServiceManager", "Text", "TransferPolicy",
        ],
        exclude: ["OpenAPI"]
    ),
    module(
        "CommandLineTool",
        in: "Tools",
        [
            "APNSProtocol", "Access", "Answers", "BackgroundTransfers", "Bytes", "CProcess", "EngineRoom",
            "FaultInjection", "Gateway", "HTTPClient", "HTTPTransport", "LaunchPolicy", "Platform", "ServiceManager",
            "Settings", "Simulation", "Text", "TransferAgent", "WakeFormat", "WakeWorker",
        ]
    ),
    program("wakegate", in: "Tools", ["CommandLineTool", "Gateway", "HTTPTransport"]),
]

/// The programs that `deploy/bench` and the budgets measure.
let measurements: [Target] = [
    program("wakegate-memory", in: "Measurements", ["Bytes", "DeviceEngine", "LaunchPolicy", "Platform"]),
    program(
        "wakegate-history",
        in: "Measurements",
        [
            "Bytes", "DeviceEngine", "History", "LaunchPolicy", "Platform", "SQLite",
        ]
    ),
    program("wakegate-workers", in: "Measurements", ["HTTPClient", "Platform", "WakeWorker"]),
    program(
        "wakegate-journal",
        in: "Measurements",
        [
            "Bytes", "DeviceEngine", "DeviceJournal", "LaunchPolicy", "Platform",
        ]
    ),
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
        [
            "Bytes", "CSimulatedDisk", "CSystemFaults", "ClusterStore", "DeviceEngine", "DeviceJournal", "History",
            "LaunchPolicy", "Platform", "SQLite", "WakeDispatch",
        ]
    ),
]

let unitTests: [Target] = [
    tests("APNSProtocolTests", in: "Pure", ["APNSProtocol", "Bytes", "WakeGateTestKit"]),
    tests("BytesTests", in: "Pure", ["Bytes", "WakeGateTestKit"]),
    tests("FaultInjectionTests", in: "Pure", ["APNSProtocol", "Bytes", "FaultInjection"]),
    tests("LaunchPolicyTests", in: "Pure", ["LaunchPolicy"]),
    tests(
        "SimulationTests",
        in: "Pure",
        [
            "LaunchPolicy", "Simulation", "WakeGateTestKit",
        ],
        resources: [.copy("BackgroundVectors"), .copy("Vectors")]
    ),
    tests("TextTests", in: "Pure", ["Text"]),
    tests("TransferPolicyTests", in: "Pure", ["TransferPolicy"]),
    tests("WakeFormatTests", in: "Pure", ["Bytes", "Text", "WakeFormat"]),
    tests("DeviceEngineTests", in: "Engines", ["Bytes", "DeviceEngine", "LaunchPolicy", "WakeGateTestKit"]),
    tests(
        "WakeDispatchTests",
        in: "Engines",
        [
            "Bytes", "DeviceEngine", "DeviceJournal", "History", "LaunchPolicy", "Simulation", "WakeDispatch",
            "WakeGateTestKit",
        ]
    ),
    tests(
        "DeviceJournalTests",
        in: "Drivers",
        [
            "Bytes", "DeviceEngine", "DeviceJournal", "SQLite", "WakeGateTestKit",
        ]
    ),
    tests("HTTPClientTests", in: "Drivers", ["Bytes", "HTTPClient", "WakeGateTestKit"]),
    tests(
        "HTTPTransportTests",
        in: "Drivers",
        [
            "Bytes", "CNghttp2", "COpenSSL", "HTTPTransport", "Platform", "WakeGateTestKit",
        ]
    ),
    tests(
        "HistoryTests",
        in: "Drivers",
        [
            "Bytes", "DeviceEngine", "History", "LaunchPolicy", "SQLite", "WakeGateTestKit",
        ]
    ),
    tests("LinuxConditionsTests", in: "Drivers", ["LinuxConditions", "WakeGateTestKit"]),
    tests("PlatformTests", in: "Drivers", ["Bytes", "Platform", "WakeGateTestKit"]),
    tests("PostgreSQLTests", in: "Drivers", ["Bytes", "Platform", "PostgreSQL", "WakeGateTestKit"]),
    tests(
        "PostgresStoreTests",
        in: "Drivers",
        [
            "Bytes", "ClusterStore", "DeviceEngine", "LaunchPolicy", "Platform", "PostgreSQL", "PostgresStore",
            "WakeGateTestKit",
        ]
    ),
    tests("SQLiteTests", in: "Drivers", ["Bytes", "SQLite", "WakeGateTestKit"]),
    tests("ServiceManagerTests", in: "Drivers", ["ServiceManager"]),
    tests("BackgroundTransfersTests", in: "SDK", ["BackgroundTransfers", "Text", "WakeGateTestKit", "WakeWorker"]),
    tests("WakeWorkerTests", in: "SDK", ["HTTPClient", "Text", "WakeFormat", "WakeGateTestKit", "WakeWorker"]),
    tests(
        "EdgeTests",
        in: "Gateway",
        [
            "APNSProtocol", "Access", "Answers", "Bytes", "DeviceEngine", "Edge", "EngineRoom", "EventLog",
            "FaultInjection", "HTTPClient", "HTTPTransport", "History", "Platform", "Settings", "Text",
            "WakeDispatch", "WakeGateTestKit",
        ]
    ),
    tests(
        "GatewayConfigurationTests",
        in: "Gateway",
        [
            "Access", "Answers", "DeviceEngine", "EngineRoom", "EventLog", "Gateway", "HTTPTransport",
            "LaunchPolicy", "Platform", "ServiceManager", "Settings", "Text", "WakeGateTestKit",
        ]
    ),
    tests("GatewayCredentialTests", in: "Gateway", ["Access", "Platform"]),
    tests(
        "GatewayEngineTests",
        in: "Gateway",
        [
            "APNSProtocol", "Access", "Bytes", "ClusterStore", "DeviceEngine", "DeviceJournal", "Edge", "EngineRoom",
            "Gateway", "HTTPTransport", "History", "LaunchPolicy", "Platform", "PostgresStore", "SQLite", "Settings",
            "WakeDispatch", "WakeFormat", "WakeGateTestKit",
        ]
    ),
    tests(
        "GatewayFaultTests",
        in: "Gateway",
        [
            "APNSProtocol", "Answers", "Bytes", "Edge", "FaultInjection", "Settings",
        ]
    ),
    tests("GatewayProviderTests", in: "Gateway", ["APNSProtocol", "Access", "Bytes", "HTTPTransport", "Settings"]),
    tests(
        "GatewayWebhookTests",
        in: "Gateway",
        [
            "Bytes", "DeviceEngine", "EngineRoom", "HTTPClient", "LaunchPolicy", "WakeGateTestKit", "Webhooks",
        ]
    ),
    tests(
        "TransferAgentTests",
        in: "Agent",
        [
            "Bytes", "DeviceEngine", "EventLog", "HTTPClient", "HTTPTransport", "Platform", "SQLite", "Text",
            "TransferAgent", "TransferPolicy", "WakeGateTestKit",
        ]
    ),
    tests(
        "CommandLineToolTests",
        in: "Tools",
        [
            "APNSProtocol", "Access", "BackgroundTransfers", "CommandLineTool", "Gateway", "HTTPClient", "Settings",
            "Text", "WakeFormat", "WakeWorker",
        ]
    ),
]

/// The tests of the whole.
let wholeTests: [Target] = [
    tests("TidyTests"),
    // Depends on the programs so that they are built next to the tests.
    tests(
        "EndToEndTests",
        ["APNSProtocol", "BackgroundTransfers", "WakeGateTestKit", "wakegate", "wakegate-workers"],
        exclude: ["Clients", "FormerStates"]
    ),
    fuzzTests,
]

let package = Package(
    name: "WakeGate",
    products: [
        .executable(name: "wakegate", targets: ["wakegate"]),
        .library(name: "WakeWorker", targets: ["WakeWorker"]),
        .library(name: "BackgroundTransfers", targets: ["BackgroundTransfers"]),
    ],
    targets: libraries + cores + drivers + sdk + server + measurements + testKit + unitTests + wholeTests,
    swiftLanguageModes: [.v6]
)
