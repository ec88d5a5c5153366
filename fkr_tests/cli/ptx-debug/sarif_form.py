"""Checks the form of a SARIF 2.1.0 log, as far as ptx-debug uses it: the requirements of the standard, and the
consistency of indices, levels, kinds and URIs. Prints its counts; exits 1 with the first fault."""
import json
import re
import sys


def require(condition, what):
    if not condition:
        sys.exit(f"not SARIF 2.1.0: {what}")


def check_location(location):
    physical = location["physicalLocation"]
    uri = physical["artifactLocation"]["uri"]
    require(re.fullmatch(r"(file://)?([A-Za-z0-9._~/-]|%[0-9A-F]{2})+", uri), f"URI {uri}")
    region = physical["region"]
    require(region["startLine"] >= 1 and region.get("startColumn", 1) >= 1, "a region before the first line")
    require("endColumn" not in region or region["endColumn"] > region["startColumn"], "an empty region")


log = json.load(open(sys.argv[1]))
require(log["version"] == "2.1.0", "version")
(run,) = log["runs"]
rules = run["tool"]["driver"]["rules"]
require(len({rule["id"] for rule in rules}) == len(rules), "two rules of one id")
require(all(rule["shortDescription"]["text"] and rule["help"]["text"] for rule in rules), "a rule without help")
flows = related = suppressed = 0
for result in run["results"]:
    require(rules[result["ruleIndex"]]["id"] == result["ruleId"], "ruleIndex")
    require(result["level"] in ("none", "note", "warning", "error"), "level")
    require(result["kind"] in ("fail", "informational"), "kind")
    require(result["kind"] == "fail" or result["level"] == "none", "a level beside a kind that is no failure")
    require(result["message"]["text"], "an empty message")
    require(re.fullmatch("[0-9a-f]{16}", result["partialFingerprints"]["ptxkitFinding/v1"]), "fingerprint")
    for location in result["locations"] + result.get("relatedLocations", []):
        check_location(location)
    for flow in result.get("codeFlows", []):
        for step in flow["threadFlows"][0]["locations"]:
            check_location(step["location"])
    for suppression in result.get("suppressions", []):
        require(suppression["kind"] in ("inSource", "external") and suppression["justification"], "a suppression")
    flows += "codeFlows" in result
    related += "relatedLocations" in result
    suppressed += "suppressions" in result
(invocation,) = run["invocations"]
print(f"{len(rules)} rules, {len(run['results'])} results, {flows} with a flow, {related} with a source, "
      f"{suppressed} suppressed, exit {invocation['exitCode']}, "
      f"{len(invocation['toolExecutionNotifications'])} notifications")
