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

/// The targets of each layer, which lie in `Sources/LAYER/TARGET`.
let layers: [String: [String]] = [
    "Libraries": [
        "CCommit", "CEmbeddedFiles", "CLibcurl", "CLinux", "CNetlink", "CNghttp2", "COpenSSL", "CPostgreSQL",
        "CProcess", "CSQLite",
        "CSystemBus",
        "CSystemd", "CThreads", "CXXHash",
    ],
    "Pure": [
        "APNSProtocol", "Bytes", "FaultInjection", "LaunchPolicy", "Simulation", "Text", "TransferPolicy",
        "WakeFormat",
    ],
    "Engines": ["ClusterStore", "DeviceEngine", "WakeDispatch"],
    "Drivers": [
        "DeviceJournal", "HTTPClient", "HTTPTransport", "History", "LinuxConditions", "Platform", "PostgreSQL",
        "PostgresStore", "SQLite", "ServiceManager",
    ],
    "Gateway": ["Access", "Answers", "Edge", "EngineRoom", "EventLog", "Gateway", "Settings", "Webhooks"],
    "Agent": ["TransferAgent"],
    "SDK": ["BackgroundTransfers", "WakeWorker"],
    "Tools": ["CommandLineTool", "wakegate"],
    "Measurements": ["wakegate-history", "wakegate-journal", "wakegate-memory", "wakegate-workers"],
    "Testing": ["CSimulatedDisk", "CSystemFaults", "WakeGateTestKit"],
]

/// The tests of each layer, which lie in `Tests/LAYER/TARGET`; the tests of the whole lie in `Tests/TARGET`.
let layersOfTests: [String: [String]] = [
    "Pure": [
        "APNSProtocolTests", "BytesTests", "FaultInjectionTests", "LaunchPolicyTests", "SimulationTests", "TextTests",
        "TransferPolicyTests", "WakeFormatTests",
    ],
    "Engines": ["DeviceEngineTests", "WakeDispatchTests"],
    "Drivers": [
        "DeviceJournalTests", "HTTPClientTests", "HTTPTransportTests", "HistoryTests", "LinuxConditionsTests",
        "PlatformTests", "PostgreSQLTests", "PostgresStoreTests", "SQLiteTests", "ServiceManagerTests",
    ],
    "Gateway": [
        "EdgeTests", "GatewayConfigurationTests", "GatewayCredentialTests", "GatewayEngineTests", "GatewayFaultTests",
        "GatewayProviderTests", "GatewayWebhookTests",
    ],
    "Agent": ["TransferAgentTests"],
    "SDK": ["BackgroundTransfersTests", "WakeWorkerTests"],
    "Tools": ["CommandLineToolTests"],
]

let fuzzDependencies: [Target.Dependency] = [
    "APNSProtocol", "Access", "Answers", "Bytes", "CNghttp2", "CommandLineTool", "DeviceEngine", "DeviceJournal",
    "Edge", "EngineRoom", "Gateway", "HTTPClient", "HTTPTransport", "History", "LaunchPolicy", "SQLite", "Settings",
    "Simulation", "Text", "WakeDispatch", "WakeFormat", "WakeWorker",
]

/// The fuzz targets: in every build the tests that replay what fuzzing found, and for `deploy/fuzz`, which sets the
/// variable and the sanitizers, the program that libFuzzer drives instead.
let fuzzTests: Target =
    if Context.environment["WAKEGATE_FUZZ"] == nil {
        .testTarget(
            name: "FuzzTests",
            dependencies: fuzzDependencies,
            exclude: ["Corpus", "Crashers", "Driver"]
        )
    } else {
        .executableTarget(
            name: "wakegate-fuzz",
            dependencies: fuzzDependencies,
            path: "Tests/FuzzTests",
            exclude: ["Corpus", "Crashers", "Replay"]
        )
    }

/// The calls that lead to `CSystemFaults` in the tests' program, where they may fail on command.
let systemFaults = [
    "accept4", "bind", "clock_gettime", "close", "epoll_create1", "epoll_ctl", "epoll_wait", "eventfd", "eventfd_read",
    "listen", "poll", "pthread_create", "recv", "send", "setsockopt", "shutdown", "socket", "SSL_do_handshake",
    "SSL_new", "SSL_read", "SSL_write",
]

let package = Package(
    name: "WakeGate",
    products: [
        .executable(name: "wakegate", targets: ["wakegate"]),
        .library(name: "WakeWorker", targets: ["WakeWorker"]),
        .library(name: "BackgroundTransfers", targets: ["BackgroundTransfers"]),
    ],
    targets: [
        // MARK: C libraries, one system-library target each
        .systemLibrary(name: "CNghttp2", pkgConfig: "libnghttp2", providers: [.apt(["libnghttp2-dev"])]),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CLibcurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(name: "CPostgreSQL", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
        .systemLibrary(name: "CXXHash", pkgConfig: "libxxhash", providers: [.apt(["libxxhash-dev"])]),
        .systemLibrary(name: "CSystemBus", pkgConfig: "libsystemd", providers: [.apt(["libsystemd-dev"])]),
        .systemLibrary(name: "CSystemd", pkgConfig: "libsystemd", providers: [.apt(["libsystemd-dev"])]),
        .systemLibrary(name: "CLinux"),
        .systemLibrary(name: "CNetlink"),
        .systemLibrary(name: "CThreads"),
        .target(name: "CProcess"),
        .target(name: "CEmbeddedFiles"),
        // `deploy/build` sets the variable: git itself cannot be asked here, as the manifest is not read again for each
        // commit.
        .target(
            name: "CCommit",
            cSettings: [.define("WAKEGATE_COMMIT", to: "\"\(Context.environment["WAKEGATE_COMMIT"] ?? "")\"")]
        ),

        // MARK: Pure: the standard library alone
        .target(name: "Bytes"),
        .target(name: "Text"),
        .target(name: "LaunchPolicy"),
        .target(name: "TransferPolicy"),
        .target(name: "APNSProtocol", dependencies: ["Bytes", "Text"]),
        .target(name: "FaultInjection", dependencies: ["APNSProtocol", "Bytes"]),
        .target(name: "WakeFormat", dependencies: ["Bytes", "Text"]),

        // MARK: Cores: state machines that own devices and slots; no I/O, no clock
        .target(name: "DeviceEngine", dependencies: ["Bytes", "LaunchPolicy"]),
        .target(name: "WakeDispatch", dependencies: ["Bytes", "DeviceEngine", "LaunchPolicy"]),

        // MARK: What many gateways share, as a protocol; no I/O
        .target(name: "ClusterStore", dependencies: ["Bytes", "DeviceEngine", "LaunchPolicy"]),

        .target(name: "Simulation", dependencies: ["Bytes", "LaunchPolicy", "Text"]),

        // MARK: Drivers: storage
        .target(name: "SQLite", dependencies: ["Bytes", "CSQLite"]),
        .target(name: "DeviceJournal", dependencies: ["Bytes", "CXXHash", "DeviceEngine", "Platform", "SQLite"]),
        .target(name: "History", dependencies: ["Bytes", "DeviceEngine", "LaunchPolicy", "Platform", "SQLite"]),

        // MARK: Drivers: the database that many gateways share
        .target(name: "PostgreSQL", dependencies: ["Bytes", "CLinux", "CPostgreSQL", "Platform"]),
        .target(
            name: "PostgresStore",
            dependencies: [
                "Bytes", "ClusterStore", "DeviceEngine", "History", "LaunchPolicy", "Platform", "PostgreSQL",
            ]
        ),

        // MARK: Drivers: what the system gives: files, clocks, random bits, and ways for threads to meet
        .target(name: "Platform", dependencies: ["Bytes", "CThreads"]),

        // MARK: Drivers: sockets, TLS, HTTP
        .target(
            name: "HTTPTransport",
            dependencies: ["Bytes", "CLinux", "CNghttp2", "COpenSSL", "Platform"]
        ),
        .target(name: "HTTPClient", dependencies: ["Bytes", "CLibcurl", "Platform"]),

        // MARK: Drivers: the machine that a worker runs on
        .target(name: "LinuxConditions", dependencies: ["CNetlink", "CSystemBus", "Platform"]),

        // MARK: Drivers: the service manager, which is systemd
        .target(name: "ServiceManager", dependencies: ["CSystemd"]),

        // MARK: The SDK: the only modules with a public interface, and nothing of the server in them
        .target(
            name: "WakeWorker",
            dependencies: ["HTTPClient", "LinuxConditions", "Platform", "Text", "WakeFormat"]
        ),
        .target(name: "BackgroundTransfers", dependencies: ["HTTPClient", "Platform", "Text"]),

        // MARK: What the gateway knows: its log, its answers, who may do what, what is set
        .target(name: "EventLog", dependencies: ["Bytes", "Platform", "ServiceManager"]),
        .target(name: "Answers", dependencies: ["Bytes", "DeviceEngine", "FaultInjection", "Text"]),
        .target(
            name: "Access",
            dependencies: ["APNSProtocol", "Answers", "Bytes", "DeviceEngine", "HTTPTransport", "Platform", "Text"]
        ),
        .target(
            name: "Settings",
            dependencies: [
                "APNSProtocol", "Access", "Answers", "Bytes", "CCommit", "DeviceEngine", "EventLog", "FaultInjection",
                "HTTPClient", "HTTPTransport", "History", "LaunchPolicy", "Platform", "ServiceManager", "Text",
                "WakeDispatch",
            ]
        ),

        // MARK: The engine at work
        .target(
            name: "EngineRoom",
            dependencies: [
                "APNSProtocol", "Access", "Answers", "Bytes", "ClusterStore", "DeviceEngine", "DeviceJournal",
                "EventLog", "HTTPTransport", "History", "LaunchPolicy", "Platform", "Settings", "Simulation", "Text",
                "WakeDispatch", "WakeFormat",
            ]
        ),

        // MARK: What takes requests, and what makes them
        .target(
            name: "Webhooks",
            dependencies: [
                "Access", "Bytes", "DeviceEngine", "EngineRoom", "EventLog", "HTTPClient", "HTTPTransport",
                "LaunchPolicy", "Platform", "Settings", "Text", "WakeDispatch", "WakeFormat",
            ]
        ),
        .target(
            name: "Edge",
            dependencies: [
                "APNSProtocol", "Access", "Answers", "Bytes", "CEmbeddedFiles", "DeviceEngine", "EngineRoom",
                "EventLog",
                "FaultInjection", "HTTPTransport", "LaunchPolicy", "Platform", "Settings", "Text", "WakeDispatch",
                "WakeFormat",
            ],
            exclude: ["Dashboard", "OpenAPI"]
        ),

        // MARK: The agent that goes on with transfers while the worker does not
        .target(
            name: "TransferAgent",
            dependencies: [
                "Bytes", "CEmbeddedFiles", "DeviceEngine", "EventLog", "HTTPClient", "HTTPTransport", "LaunchPolicy",
                "LinuxConditions", "Platform", "SQLite", "ServiceManager", "Text", "TransferPolicy",
            ],
            exclude: ["OpenAPI"]
        ),

        // MARK: Composition
        .target(
            name: "Gateway",
            dependencies: [
                "APNSProtocol", "Access", "Answers", "Bytes", "ClusterStore", "DeviceEngine", "DeviceJournal", "Edge",
                "EngineRoom", "EventLog", "HTTPClient", "HTTPTransport", "History", "Platform", "PostgresStore",
                "ServiceManager", "Settings", "Text", "WakeDispatch", "Webhooks",
            ]
        ),
        .target(
            name: "CommandLineTool",
            dependencies: [
                "APNSProtocol", "Access", "Answers", "BackgroundTransfers", "Bytes", "CProcess", "EngineRoom",
                "FaultInjection", "Gateway", "HTTPClient", "HTTPTransport", "LaunchPolicy", "Platform",
                "ServiceManager", "Settings", "Simulation", "Text", "TransferAgent", "WakeFormat", "WakeWorker",
            ]
        ),
        .executableTarget(name: "wakegate", dependencies: ["CommandLineTool", "Gateway", "HTTPTransport"]),

        // MARK: Measurements
        .executableTarget(
            name: "wakegate-memory",
            dependencies: ["Bytes", "DeviceEngine", "LaunchPolicy", "Platform"]
        ),
        .executableTarget(
            name: "wakegate-history",
            dependencies: ["Bytes", "DeviceEngine", "History", "LaunchPolicy", "Platform", "SQLite"]
        ),
        .executableTarget(name: "wakegate-workers", dependencies: ["HTTPClient", "Platform", "WakeWorker"]),
        .executableTarget(
            name: "wakegate-journal",
            dependencies: ["Bytes", "DeviceEngine", "DeviceJournal", "LaunchPolicy", "Platform"]
        ),

        // MARK: Tests
        .testTarget(name: "LaunchPolicyTests", dependencies: ["LaunchPolicy"]),
        .testTarget(
            name: "SimulationTests",
            dependencies: ["LaunchPolicy", "Simulation", "WakeGateTestKit"],
            resources: [.copy("BackgroundVectors"), .copy("Vectors")]
        ),
        .target(name: "CSimulatedDisk", dependencies: ["CSQLite"], linkerSettings: [.linkedLibrary("sqlite3")]),
        .target(
            name: "CSystemFaults",
            dependencies: ["COpenSSL"],
            linkerSettings: [
                .linkedLibrary("ssl"), .linkedLibrary("crypto"),
                .unsafeFlags(systemFaults.flatMap { ["-Xlinker", "--wrap=\($0)"] }),
            ]
        ),
        .target(
            name: "WakeGateTestKit",
            dependencies: [
                "Bytes", "CSimulatedDisk", "CSystemFaults", "ClusterStore", "DeviceEngine", "DeviceJournal", "History",
                "LaunchPolicy", "Platform", "SQLite", "WakeDispatch",
            ]
        ),
        .testTarget(name: "TidyTests"),
        .testTarget(
            name: "DeviceEngineTests",
            dependencies: ["Bytes", "DeviceEngine", "LaunchPolicy", "WakeGateTestKit"]
        ),
        .testTarget(
            name: "GatewayConfigurationTests",
            dependencies: [
                "Access", "Answers", "DeviceEngine", "EngineRoom", "EventLog", "Gateway", "HTTPTransport",
                "LaunchPolicy", "Platform", "ServiceManager", "Settings", "Text", "WakeGateTestKit",
            ]
        ),
        .testTarget(
            name: "GatewayEngineTests",
            dependencies: [
                "APNSProtocol", "Access", "Bytes", "ClusterStore", "DeviceEngine", "DeviceJournal", "Edge",
                "EngineRoom", "Gateway", "HTTPTransport", "History", "LaunchPolicy", "Platform", "PostgresStore",
                "SQLite", "Settings", "WakeDispatch", "WakeFormat", "WakeGateTestKit",
            ]
        ),
        .testTarget(
            name: "EdgeTests",
            dependencies: [
                "APNSProtocol", "Access", "Answers", "Bytes", "DeviceEngine", "Edge", "EngineRoom", "EventLog",
                "FaultInjection", "HTTPClient", "HTTPTransport", "History", "Platform", "Settings", "Text",
                "WakeDispatch", "WakeGateTestKit",
            ]
        ),
        .testTarget(name: "FaultInjectionTests", dependencies: ["APNSProtocol", "Bytes", "FaultInjection"]),
        .testTarget(
            name: "GatewayFaultTests",
            dependencies: ["APNSProtocol", "Answers", "Bytes", "Edge", "FaultInjection", "Settings"]
        ),
        .testTarget(name: "GatewayCredentialTests", dependencies: ["Access", "Platform"]),
        .testTarget(
            name: "GatewayProviderTests",
            dependencies: ["APNSProtocol", "Access", "Bytes", "HTTPTransport", "Settings"]
        ),
        .testTarget(
            name: "GatewayWebhookTests",
            dependencies: [
                "Bytes", "DeviceEngine", "EngineRoom", "HTTPClient", "LaunchPolicy", "WakeGateTestKit", "Webhooks",
            ]
        ),
        .testTarget(name: "HTTPClientTests", dependencies: ["Bytes", "HTTPClient", "WakeGateTestKit"]),
        .testTarget(
            name: "WakeWorkerTests",
            dependencies: ["HTTPClient", "Text", "WakeFormat", "WakeGateTestKit", "WakeWorker"]
        ),
        .testTarget(
            name: "BackgroundTransfersTests",
            dependencies: ["BackgroundTransfers", "Text", "WakeGateTestKit", "WakeWorker"]
        ),
        .testTarget(name: "PlatformTests", dependencies: ["Bytes", "Platform"]),
        .testTarget(name: "ServiceManagerTests", dependencies: ["ServiceManager"]),
        .testTarget(name: "LinuxConditionsTests", dependencies: ["LinuxConditions", "WakeGateTestKit"]),
        .testTarget(
            name: "CommandLineToolTests",
            dependencies: [
                "APNSProtocol", "Access", "BackgroundTransfers", "CommandLineTool", "Gateway", "HTTPClient", "Settings",
                "Text", "WakeFormat", "WakeWorker",
            ]
        ),
        // Depends on the programs so that they lie, built, beside the tests.
        .testTarget(
            name: "EndToEndTests",
            dependencies: ["APNSProtocol", "BackgroundTransfers", "WakeGateTestKit", "wakegate", "wakegate-workers"],
            exclude: ["Clients", "FormerStates"]
        ),
        .testTarget(
            name: "WakeDispatchTests",
            dependencies: [
                "Bytes", "DeviceEngine", "DeviceJournal", "History", "LaunchPolicy", "Simulation", "WakeDispatch",
                "WakeGateTestKit",
            ]
        ),
        .testTarget(name: "PostgreSQLTests", dependencies: ["Bytes", "Platform", "PostgreSQL", "WakeGateTestKit"]),
        .testTarget(
            name: "PostgresStoreTests",
            dependencies: [
                "Bytes", "ClusterStore", "DeviceEngine", "LaunchPolicy", "Platform", "PostgreSQL", "PostgresStore",
                "WakeGateTestKit",
            ]
        ),
        .testTarget(name: "SQLiteTests", dependencies: ["Bytes", "SQLite", "WakeGateTestKit"]),
        .testTarget(
            name: "DeviceJournalTests",
            dependencies: ["Bytes", "DeviceEngine", "DeviceJournal", "SQLite", "WakeGateTestKit"]
        ),
        .testTarget(
            name: "HistoryTests",
            dependencies: ["Bytes", "DeviceEngine", "History", "LaunchPolicy", "SQLite", "WakeGateTestKit"]
        ),
        .testTarget(name: "TransferPolicyTests", dependencies: ["TransferPolicy"]),
        .testTarget(
            name: "TransferAgentTests",
            dependencies: [
                "Bytes", "DeviceEngine", "EventLog", "HTTPClient", "HTTPTransport", "Platform", "SQLite", "Text",
                "TransferAgent", "TransferPolicy", "WakeGateTestKit",
            ]
        ),
        .testTarget(name: "TextTests", dependencies: ["Text"]),
        .testTarget(name: "WakeFormatTests", dependencies: ["Bytes", "Text", "WakeFormat"]),
        .testTarget(name: "BytesTests", dependencies: ["Bytes", "WakeGateTestKit"]),
        .testTarget(
            name: "HTTPTransportTests",
            dependencies: ["Bytes", "CNghttp2", "COpenSSL", "HTTPTransport", "Platform", "WakeGateTestKit"]
        ),
        .testTarget(name: "APNSProtocolTests", dependencies: ["APNSProtocol", "Bytes", "WakeGateTestKit"]),
        fuzzTests,
    ],
    swiftLanguageModes: [.v6]
)

for (folder, layers) in [("Sources", layers), ("Tests", layersOfTests)] {
    for (layer, names) in layers {
        for target in package.targets where names.contains(target.name) {
            target.path = "\(folder)/\(layer)/\(target.name)"
        }
    }
}

for target in package.targets where [.regular, .executable, .test].contains(target.type) {
    target.swiftSettings = (target.swiftSettings ?? []) + swiftSettings
}
