/// The numbers by which the engine knows webhooks, and the places where the driver keeps them.
///
/// A number is never used again, since something on its way may still carry it; a place is, once its webhook has ended.
package struct WebhookNumbers {
    private var places: [UInt32: Int] = [:]
    private var free: [Int] = []
    private var next: UInt32 = 0
    /// As many places as there are, those that are free included.
    package private(set) var placeCount = 0

    package init() {}

    /// A webhook begins.
    ///
    /// - Returns: its number and its place, which is a new one behind the others where none is free.
    package mutating func begin() -> (number: UInt32, place: Int) {
        let place: Int
        if let last = self.free.popLast() {
            place = last
        } else {
            place = self.placeCount
            self.placeCount += 1
        }
        defer { self.next += 1 }
        self.places[self.next] = place
        return (self.next, place)
    }

    /// Where the webhook with a number is; nil when it has ended.
    package func place(of number: UInt32) -> Int? { self.places[number] }

    /// A webhook has ended: nobody keeps its place any more.
    package mutating func end(_ number: UInt32) {
        guard let place = self.places.removeValue(forKey: number) else { return }
        self.free.append(place)
    }
}
