// Package release decides how releases are staged, made live, rolled back and removed. Like package
// plan it is pure: it returns a plan, which package apply executes.
//
// A release is not part of the model but a site.Site of its own, like a twin, so everything that
// takes a site takes releases. In addition to its layers, a release has a copy of the site
// directory (decision 16), because templates, steps and checks are in no layer.
//
// # A switch
//
// Staging brings up another site: the release in quarantine (twin.Quarantine). Its nodes have other
// ids, its networks another key, and its volumes are copies (decision 13). A switch then goes as
// follows (package control):
//
//  1. Read releases.json and the releases' copies of the site directory, take the lock, and finish
//     a switch that was killed.
//  2. Plan from the current state (Switch): proofs in quarantine, retire, take, one step that moves
//     all links, activate, check, commit, names.
//  3. Record the state in which the set must end if the switch is killed (switch in releases.json).
//  4. Do the steps. If one fails, undo those that were done (package wayback).
//  5. The commit step writes releases.json: it removes the record of the switch and records the
//     former release. With --confirm-within, the record of the switch stays until each host has
//     stored how it goes back, and then the trial begins.
//  6. A process on each host holds trial.lock, so that other processes know that the trial is
//     watched. It runs the health checks each second, and ends the trial with a confirmation or by
//     switching back (package control/unattended).
//
// node.json records for each node whether it is staged (in quarantine) or active, and which volumes
// it has or may have. The plan compares that with the links and mounts that exist (decision 17). So
// a switch is planned from the current state, not from the intention of an earlier run. The same
// function finishes a killed switch, however far it had come (decision 15).
package release
