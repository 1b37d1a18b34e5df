// Package wayback plans how the steps of a run are undone.
//
// Undo reverses the steps that were done, last first. The former directory of a replaced node is
// kept until the run has succeeded (engine.Replacer), so undoing is a rename. Everything else that
// undo needs is on disk, in undo/ of the site's state: files before configure overwrote them, the
// former names of nodes, and whether a node was configured before its services were stopped. It is
// written before a step changes anything, so after a kill another process can undo the steps. The
// end of the run, or the next run, removes it.
//
// Layers stay in the store. Destroyed nodes and volumes cannot be restored, and the plan shows no
// undo for these steps. Without --undo, completed steps remain, so that the same command can
// resume. The exception is a failed batch: Restore restores its nodes (decision 24).
//
// It is a package of its own because it is pure, unlike package control, which carries out what it
// plans.
package wayback
