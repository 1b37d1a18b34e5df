// Package treesync sends trees of files between hosts: it also describes them, and decides which
// extended attributes are sent.
//
// A Sender goes through trees that may be changing, and sends what has changed since its last pass.
// A Receiver writes that to a directory that no node uses, with a record beside it: who sent it,
// and a digest of all that came. Each pass begins with the digest of the one before, so both sides
// have the same digest, or not the same trees. They need a stream of bytes in both directions.
//
// Neither side trusts the other. What comes is written by package tree, which leaves no tree; it is
// no more than was announced, and no more than the disk has room for.
package treesync
