// The only file that uses libpq.
internal import CPostgreSQL
package import Wire

/// A libpq connection: the handle, its calls, and the notices of the server.
@safe
final class LibPQ {
    /// The event that a connection in progress waits for; `nothing` once it is open.
    enum Polling {
        case readable, writable, nothing, failed
    }

    /// The maximum number of unread notices.
    static let noticesMax = 256

    /// The unread notices of the server. Notices beyond `noticesMax` are dropped.
    private(set) var notices: [PostgresNotice] = []
    /// The notice with which the server ends an idle session.
    private(set) var ending: PostgresNotice?

    private let connection: OpaquePointer?
    private var values: [UnsafePointer<CChar>?] = unsafe []
    private var lengths: [Int32] = []
    private var formats: [Int32] = []

    /// Starts a connection; sends nothing before `poll`.
    init(_ words: [(keyword: String, value: String)]) {
        var text: [CChar] = []
        var places: [(keyword: Int, value: Int)] = []
        for word in words {
            let keyword = text.count
            text += word.keyword.utf8CString
            places.append((keyword, text.count))
            text += word.value.utf8CString
        }
        unsafe self.connection = unsafe text.withUnsafeBufferPointer { text in
            let base = text.baseAddress
            var keywords = unsafe places.map { place in unsafe base.map { unsafe $0 + place.keyword } }
            var values = unsafe places.map { place in unsafe base.map { unsafe $0 + place.value } }
            unsafe keywords.append(nil)
            unsafe values.append(nil)
            return unsafe PQconnectStartParams(keywords, values, 1)
        }
        // While connecting, the error code is only part of the verbose text.
        unsafe PQsetErrorVerbosity(self.connection, PQERRORS_VERBOSE)
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe PQsetNoticeReceiver(
            self.connection,
            { context, result in
                guard let context = unsafe context, let result = unsafe result else { return }
                unsafe Unmanaged<LibPQ>.fromOpaque(context).takeUnretainedValue().noticed(PostgresNotice(result))
            },
            context
        )
    }

    deinit { unsafe PQfinish(self.connection) }

    // MARK: Properties

    /// The effective options, including options of a service file and the environment; nil if memory is exhausted.
    var options: [String: String]? {
        guard let options = unsafe PQconninfo(self.connection) else { return nil }
        defer { unsafe PQconninfoFree(options) }
        var values: [String: String] = [:]
        var option = unsafe options
        while let keyword = unsafe option.pointee.keyword {
            if let value = unsafe option.pointee.val {
                unsafe values[String(cString: keyword)] = String(cString: value)
            }
            unsafe option += 1
        }
        return values
    }

    var descriptor: Int32 { unsafe PQsocket(self.connection) }
    var host: String { unsafe PQhost(self.connection).map { unsafe String(cString: $0) } ?? "" }
    var port: String { unsafe PQport(self.connection).map { unsafe String(cString: $0) } ?? "" }
    var backend: Int32 { unsafe PQbackendPID(self.connection) }
    var version: Int { unsafe Int(PQserverVersion(self.connection)) }
    var isBad: Bool { unsafe PQstatus(self.connection) == CONNECTION_BAD }
    var message: String { unsafe String(cString: PQerrorMessage(self.connection)) }

    // MARK: Connecting

    /// Continues to connect.
    func poll() -> Polling {
        switch unsafe PQconnectPoll(self.connection) {
        case PGRES_POLLING_READING: .readable
        case PGRES_POLLING_WRITING: .writable
        case PGRES_POLLING_OK: .nothing
        case _: .failed
        }
    }

    /// Makes the connection nonblocking and enters pipeline mode, in which statements can be sent before earlier
    /// statements are answered.
    ///
    /// - Returns: true on success.
    func beginPipeline() -> Bool {
        unsafe PQsetErrorVerbosity(self.connection, PQERRORS_DEFAULT)
        return unsafe PQsetnonblocking(self.connection, 1) == 0 && PQenterPipelineMode(self.connection) == 1
    }

    // MARK: Sending; each call returns true if the statement was queued

    func prepare(_ name: String, _ sql: String) -> Bool {
        unsafe PQsendPrepare(self.connection, name, sql, 0, nil) == 1
    }

    func query(_ sql: String, _ parameters: borrowing PostgresParameters) -> Bool {
        self.point(to: parameters)
        let count = Int32(parameters.count)
        return unsafe PQsendQueryParams(self.connection, sql, count, nil, self.values, self.lengths, self.formats, 1)
            == 1
    }

    func execute(_ name: String, _ parameters: borrowing PostgresParameters) -> Bool {
        self.point(to: parameters)
        let count = Int32(parameters.count)
        return unsafe PQsendQueryPrepared(self.connection, name, count, self.values, self.lengths, self.formats, 1)
            == 1
    }

    func sync() -> Bool { unsafe PQpipelineSync(self.connection) == 1 }

    /// Passes queued bytes to the system. Returns 0 if all were passed, 1 if some remain, and -1 if the connection is
    /// lost.
    func flush() -> Int32 { unsafe PQflush(self.connection) }

    /// Records the address of each parameter for libpq, which copies the values before it returns.
    private func point(to parameters: borrowing PostgresParameters) {
        unsafe self.values.removeAll(keepingCapacity: true)
        self.lengths.removeAll(keepingCapacity: true)
        // Even an empty value has an address, because libpq treats a null address as NULL.
        let base = unsafe parameters.bytes.buffer.baseAddress
        for place in parameters.places {
            let start = unsafe base.map { unsafe ($0 + place.offset).assumingMemoryBound(to: CChar.self) }
            unsafe self.values.append(place.count < 0 ? nil : start)
            self.lengths.append(Int32(max(0, place.count)))
        }
        while self.formats.count < parameters.count { self.formats.append(1) }
    }

    // MARK: Reading

    /// Reads the available bytes. Returns false if the connection is lost.
    func consume() -> Bool { unsafe PQconsumeInput(self.connection) == 1 }

    /// True if the next result has not arrived.
    var isBusy: Bool { unsafe PQisBusy(self.connection) != 0 }

    /// Returns the next result; nil at the end of a statement's results.
    func next() -> PostgresRows? {
        guard let result = unsafe PQgetResult(self.connection) else { return nil }
        return unsafe PostgresRows(result)
    }

    func notification() -> PostgresNotification? {
        guard let notify = unsafe PQnotifies(self.connection) else { return nil }
        defer { unsafe PQfreemem(notify) }
        return unsafe PostgresNotification(
            channel: String(cString: notify.pointee.relname),
            payload: String(cString: notify.pointee.extra),
            sender: notify.pointee.be_pid
        )
    }

    func takeNotices() -> [PostgresNotice] {
        defer { self.notices.removeAll() }
        return self.notices
    }

    private func noticed(_ notice: PostgresNotice) {
        if notice.isFatal { self.ending = notice }
        if self.notices.count < Self.noticesMax { self.notices.append(notice) }
    }
}

/// The result of a statement: its rows, each value in binary. Freed with the last reference.
@safe
package final class PostgresRows {
    enum Status {
        case rows, failed, aborted, synced
    }

    private let result: OpaquePointer

    fileprivate init(_ result: OpaquePointer) { unsafe self.result = result }

    deinit { unsafe PQclear(self.result) }

    var status: Status {
        switch unsafe PQresultStatus(self.result) {
        case PGRES_PIPELINE_SYNC: .synced
        case PGRES_PIPELINE_ABORTED: .aborted
        case PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_EMPTY_QUERY: .rows
        case _: .failed
        }
    }

    /// The number of rows.
    package var count: Int { unsafe Int(PQntuples(self.result)) }
    private var columnCount: Int { unsafe Int(PQnfields(self.result)) }
    /// The server's command tag of the statement, such as `UPDATE 3`.
    package var tag: String { unsafe String(cString: PQcmdStatus(self.result)) }
    /// The number of rows the statement returned or changed; 0 for other kinds of statements.
    package var affectedCount: Int { unsafe Int(String(cString: PQcmdTuples(self.result))) ?? 0 }
    /// The error of a failed statement.
    var failure: PostgresNotice { unsafe PostgresNotice(self.result) }

    package func isNull(_ row: Int, _ column: Int) -> Bool { self.value(row, column) == nil }

    /// Returns the bytes of a value, empty for NULL; valid as long as this object.
    package func bytes(_ row: Int, _ column: Int) -> ByteView { self.value(row, column) ?? ByteView() }

    private func value(_ row: Int, _ column: Int) -> ByteView? {
        precondition(row >= 0 && row < self.count && column >= 0 && column < self.columnCount, "no such value")
        let (row, column) = (Int32(row), Int32(column))
        guard unsafe PQgetisnull(self.result, row, column) == 0 else { return nil }
        let count = unsafe Int(PQgetlength(self.result, row, column))
        guard count > 0, let base = unsafe PQgetvalue(self.result, row, column) else { return ByteView() }
        return unsafe ByteView(UnsafeRawBufferPointer(start: base, count: count))
    }
}

extension PostgresNotice {
    /// Reads the fields of an error or notice, and libpq's whole message if there are none.
    fileprivate init(_ result: OpaquePointer) {
        func field(_ letter: Unicode.Scalar) -> String? {
            unsafe PQresultErrorField(result, Int32(letter.value)).map { unsafe String(cString: $0) }
        }
        self.init(
            state: field("C") ?? "",
            severity: field("V") ?? field("S") ?? "",
            message: ConnectFailure.line(unsafe field("M") ?? String(cString: PQresultErrorMessage(result))) ?? "",
            function: field("R") ?? ""
        )
    }
}
