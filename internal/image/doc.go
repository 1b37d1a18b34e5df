// Package image builds and stores the read-only file trees of nodes: base images and role layers.
//
// To build a layer, open the Store of a state directory and call BuildBase or BuildLayer with the layer's
// spec, whose digest is its name. The Store starts a scratch container on the layers below, runs in it what
// the roles ask for, and makes the result canonical. Tree then returns the directory that nodes mount, Record
// says what it contains, Verify compares it with its digests, and GC removes what no node uses. Packages come
// into scratch containers through the Store's Cache.
//
// A tree is built in a staging directory and enters the store whole, by one rename. A builder that is killed
// leaves nothing that could be taken for a layer.
//
// # Which layers a node has
//
// A node stands on its base image and at most four role layers: one for each of its first three roles, and
// one for the rest (spec.RoleLayers). A layer depends only on the roles up to it and never on other nodes, so
// adding nodes to a site does not change existing layers.
//
// # Names
//
// A layer is named by the digest of its recipe: image, apt and pip names, requirements, files, build steps
// and the files that these read, in the order of the roles. Its content is digested too, so that Verify can
// detect damage. The parts of a recipe have names ("receptor: file /etc/x"), and node.json stores them, so
// that a plan can say why a layer changes. Rendered templates are not part of a recipe: they differ between
// nodes and go to the private layer.
//
// # Owners
//
// On disk, files have the owners that the node sees: root's files belong to 0. Package rootfs maps them to
// each node's range of user ids, so nothing is ever copied or chowned for a node.
package image
