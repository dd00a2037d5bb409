/// The types that an array may be of, by PostgreSQL's numbers for them.
package enum PostgresElement: UInt32, CaseIterable, Sendable {
    case bool = 16
    case bytes = 17
    case int8 = 20
    case int2 = 21
    case int4 = 23
    case text = 25
    case place = 27
    case uuid = 2950
}
