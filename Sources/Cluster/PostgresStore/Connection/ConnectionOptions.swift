/// What libpq makes of a connection string, or of a connection: values by keyword.
struct ConnectionOptions {
    private let values: [String: String]

    /// - Returns: nil when libpq cannot read the text.
    init?(parsing text: String) {
        guard let values = LibPQ.options(parsing: text) else { return nil }
        self.values = values
    }

    /// What is in force for a connection, the environment and the service file considered; nil without memory for it.
    init?(of connection: LibPQ) {
        guard let values = connection.options else { return nil }
        self.values = values
    }

    /// A value that is set and not empty.
    subscript(_ keyword: String) -> String? {
        guard let value = self.values[keyword], !value.isEmpty else { return nil }
        return value
    }

    /// A value of several parts, one for each host.
    func list(_ keyword: String) -> [String] {
        self[keyword].map { $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init) } ?? []
    }
}
