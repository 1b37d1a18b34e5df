// Package chunks fetches a tree from several hosts at once, in verified pieces.
//
// Read returns the Index of a tree: its paths, with the digests of its files. Serve sends an index
// and pieces over a connection. Open begins or resumes a download. Fetch requests the missing
// pieces from several hosts. Pieces that have arrived can be served to other hosts at once. Extract
// writes the tree.
//
// Sources are not trusted. The caller decides whether an index belongs to the layer (Index.Lines).
// A source that sends a piece whose digest differs from the index is not asked again. The digest of
// the layer proves the paths, modes, owners, links, attributes and files. Times, names of packages
// and hard links are not proven, because nothing depends on them (decision 42).
package chunks
