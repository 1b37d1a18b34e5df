// Package release decides how releases of a set of nodes are staged, made live, rolled back and removed. It
// is pure, as package plan is: it returns a plan, and package apply carries it out.
//
// A release is not part of the model but a site.Site of its own, like a twin, so everything that takes a site
// takes releases. Besides its layers it keeps a copy of the site directory (decision 16), because templates,
// steps and checks are in no layer.
//
// # A switch
//
// To stage is to bring up another site: the release in quarantine (twin.Quarantine). Its nodes have other
// ids, its networks another key, and its volumes are copies (decision 13). A switch then goes as follows
// (package control):
//
//  1. Read releases.json and the releases' copies of the site directory, take the lock, and finish a switch
//     that was killed.
//  2. Plan from what exists (Switch): proofs in quarantine, retire, take, one step that moves all links,
//     activate, check, commit, names.
//  3. Record where the set must end up if the switch is killed (switch in releases.json).
//  4. Do the steps. If one fails, undo those that were done (package wayback).
//  5. The step commit writes releases.json: the record of the switch is removed, and the former release is
//     recorded. With --confirm-within the record of the switch stays until each host has stored how it goes
//     back, and then the trial begins.
//  6. A process on each host holds trial.lock, so that others see it watching. It runs the health checks each
//     second, and ends the trial with a confirmation or by switching back (package control/unattended).
//
// node.json records for each node whether it is staged (in quarantine) or active, and which volumes it holds
// or may hold. The plan compares that with the links and mounts that exist (decision 17). So a switch is
// planned from what exists, not from what an earlier run meant to do, and the same function finishes a killed
// switch, however far it had come (decision 15).
package release
