package import Engine
import Policy
package import Wire

extension RequestBody {
    /// What a worker says of a wake that it is done with: `result` of a push, `success` of a task or a session.
    ///
    /// - Throws: `APIError` with reason `BadResult`.
    package static func report(_ body: ByteView) throws(APIError) -> WakeReport {
        if let report = self.shortReport(body) { return report }
        let object = try self.object(body, reason: "BadResult")
        switch (object["result"], object["success"]) {
        case (let result, nil):
            guard case .string(let text)? = result, let result = FetchResult(rawValue: text) else {
                let message =
                    "result is \(result?.described ?? "missing"); send newData, noData or failed, or of a "
                    + "task or a session success, true or false."
                throw APIError(400, "BadResult", message)
            }
            return .push(result)
        case (nil, let success?):
            guard case .bool(let isSuccess) = success else {
                throw APIError(400, "BadResult", "success is \(success.described); send true or false.")
            }
            return .task(isSuccess ? .success : .failure)
        case (_?, _?):
            throw APIError(400, "BadResult", "A push takes result, a task or a session success; send one of them.")
        }
    }

    /// A report as the SDKs write it: what it says shows without taking the JSON apart. Nil for any other.
    private static func shortReport(_ body: ByteView) -> WakeReport? {
        if body == #"{"result":"newData"}"# { return .push(.newData) }
        if body == #"{"result":"noData"}"# { return .push(.noData) }
        if body == #"{"result":"failed"}"# { return .push(.failed) }
        if body == #"{"success":true}"# { return .task(.success) }
        if body == #"{"success":false}"# { return .task(.failure) }
        return nil
    }

    /// How far a continued task is.
    ///
    /// - Throws: `APIError` with reason `BadProgress`.
    package static func progress(_ body: ByteView) throws(APIError) -> TaskProgress {
        if let progress = PlainProgress.read(body) { return progress }
        let object = try self.object(body, reason: "BadProgress")
        let fields = ["completed", "total", "title", "subtitle"]
        if let other = object.members.map(\.name).first(where: { !fields.contains($0) }) {
            let nearest = NearestMatch.find(other, in: fields).map { " (\($0)?)" } ?? ""
            let message = "\(other) is not a field of progress\(nearest); it takes \(fields.joined(separator: ", "))."
            throw APIError(400, "BadProgress", message)
        }
        return TaskProgress(
            completed: try self.units("completed", of: object),
            total: try self.units("total", of: object),
            title: try self.text("title", of: object, reason: "BadProgress"),
            subtitle: try self.text("subtitle", of: object, reason: "BadProgress")
        )
    }

    /// Returns the reason that a worker gives for releasing a wake, or an empty string if the body has none.
    ///
    /// - Throws: `APIError` with reason `BadRelease`.
    package static func release(_ body: ByteView) throws(APIError) -> String {
        guard !body.isEmpty else { return "" }
        let object = try self.object(body, reason: "BadRelease")
        if let other = object.members.map(\.name).first(where: { $0 != "reason" }) {
            throw APIError(400, "BadRelease", "\(other) is not a member of a release; it takes reason alone.")
        }
        return try self.text("reason", of: object, reason: "BadRelease") ?? ""
    }

    private static func units(_ field: String, of object: JSONValue) throws(APIError) -> UInt64 {
        guard case .number(let number)? = object[field], let units = UInt64(exactly: number.double),
            units <= Self.unitsMax
        else {
            let found = object[field]?.described ?? "missing"
            let message = "\(field) is \(found); it takes a whole number from 0 to \(Self.unitsMax)."
            throw APIError(400, "BadProgress", message)
        }
        return units
    }

    /// The text of a task's field; nil when there is none.
    ///
    /// - Parameter reason: the code to answer with when it is no text, or too long.
    static func text(_ field: String, of object: JSONValue, reason: String) throws(APIError) -> String? {
        guard let value = object[field] else { return nil }
        guard case .string(let text) = value, text.utf8.count <= Self.textBytesMax else {
            let message = "\(field) is \(value.described); it takes a text of at most \(Self.textBytesMax) bytes."
            throw APIError(400, reason, message)
        }
        return text
    }

    /// The most bytes of a title, a subtitle, or the reason of a release.
    static let textBytesMax = 256
    /// The largest count: the last whole number that every JSON reader keeps.
    static let unitsMax: UInt64 = 1 << 53 - 1
}
