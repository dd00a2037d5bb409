package import Engine

extension StoreSettings {
    /// - Parameters:
    ///   - text: a URI of libpq.
    ///   - connections: how many connections commit.
    ///   - isInsecureAllowed: servers on other machines need not prove who they are.
    /// - Throws: when it is no address, or would not be safe.
    package init(_ text: String, connections: Int, isInsecureAllowed: Bool) throws(StoreError) {
        do throws(PostgresError) {
            self.init(address: try PostgresAddress(text, isInsecureAllowed: isInsecureAllowed))
        } catch { throw StoreError(error) }
        self.connections = connections
    }
}
