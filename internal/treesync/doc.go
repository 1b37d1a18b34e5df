// Package treesync sends trees of files between hosts. It also describes their paths and decides
// which extended attributes are sent.
//
// A Sender reads trees that may be changing and sends what has changed since its last pass. A
// Receiver writes that to a directory that no node uses. A record beside the trees says who sent
// them, and has a digest of everything received. Each pass begins with the digest of the previous
// one, so if the digests of both sides are equal, so are the trees. Sender and Receiver need a
// stream of bytes in both directions.
//
// Neither side trusts the other. Package tree writes what is received, so nothing is written
// outside of the trees. A Receiver accepts no more than was announced, and no more than there is
// free disk space.
package treesync
