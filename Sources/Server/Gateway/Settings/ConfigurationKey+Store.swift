import Wire

extension ConfigurationKey {
    /// Where devices and pushes are kept, and how.
    static let store = [
        ConfigurationKey(
            name: "store",
            requirement: "\"sqlite\", \"memory\", or \(DatabaseAddress.requirement)",
            summary: "where devices and pushes are kept: a file, nowhere, or a database that gateways share",
            isText: true,
            assign: {
                guard case .string(let text) = $1, let store = GatewayConfiguration.Store(text) else { return false }
                $0.store = store
                return true
            },
            value: { .string($0.store.text) },
            fault: Self.fault(ofStore:)
        ),
        ConfigurationKey(
            name: "databaseConnections",
            requirement: "a whole number from 1 to 100",
            summary: "how many connections to the database of `store` commit; three more control, share and read",
            isText: false,
            assign: {
                guard case .number(let number) = $1, let count = Int(exactly: number.double), (1...100).contains(count)
                else { return false }
                $0.databaseConnections = count
                return true
            },
            value: { .number(JSONNumber(Double($0.databaseConnections))) }
        ),
        ConfigurationKey(
            flag: "databaseInsecure",
            \.isDatabaseInsecure,
            "allow a database on another machine that does not prove who it is (no sslmode=verify-full)"
        ),
    ]

    /// A value that may hold a password is not shown.
    private static func fault(ofStore value: JSONValue) -> ConfigurationFault? {
        guard case .string(let text) = value else { return nil }
        if DatabaseAddress.schemes.contains(where: { text.hasPrefix($0) }) {
            do throws(DatabaseAddress.Fault) { _ = try DatabaseAddress(text) } catch {
                return ConfigurationFault(key: "store", problem: error.problem, remedy: error.remedy)
            }
        }
        guard text.utf8.contains(where: { !Self.isOfWords($0) }) else { return nil }
        return ConfigurationFault(
            key: "store",
            problem: "is neither a file, nor memory, nor the address of a database",
            remedy: "write \"sqlite\", \"memory\", or \(DatabaseAddress.requirement)"
        )
    }

    private static func isOfWords(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}

extension GatewayConfiguration.Store {
    /// The store that a value of the key `store` stands for; nil when it is none.
    init?(_ text: String) {
        switch text {
        case "sqlite": self = .sqlite
        case "memory": self = .memory
        default:
            guard let address = try? DatabaseAddress(text) else { return nil }
            self = .postgresql(address)
        }
    }

    /// The value of the key `store`.
    package var text: String {
        switch self {
        case .sqlite: "sqlite"
        case .memory: "memory"
        case .postgresql(let address): address.text
        }
    }
}
