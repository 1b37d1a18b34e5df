// Package chunks fetches the files of a tree from several hosts at once, in pieces that are verified as they
// arrive.
//
// Read makes the Index of a tree: what is at each path, with the digests of its files. Serve sends an index
// and pieces over a connection. Open begins or resumes a download, Fetch requests the missing pieces from
// several hosts, and what has arrived can be served to others at once. Extract makes the tree.
//
// Sources may lie. The caller decides whether an index is that of the layer (Index.Lines). A source that
// sends a piece with another digest than the index says is not asked again. The digest of the layer proves
// the paths, modes, owners, links, attributes and files; times, names of packages and which files are one
// inode are not proven, because nothing depends on them (decision 42).
package chunks
