/// Why a test has no PostgreSQL.
package struct PostgresFailure: Error, CustomStringConvertible {
    package let description: String
}
