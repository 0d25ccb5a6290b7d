//! The nodes of a guest's memory (`numa=2x512M`, `numa=768M+256M`, `numa=256M+512M@slow`).

use std::fmt;
use std::str::FromStr;

use pagelab_experiment::Size;

/// Nodes at most: what QEMU's usual machine takes without more words.
const MAX_NODES: usize = 8;
/// The least memory of a node, bytes.
const MIN_NODE_BYTES: u64 = 16 << 20;

/// What the machine's tables (ACPI HMAT) say of a node's memory as its processors see it: nanoseconds of a load, bytes a second.
const USUAL: (u32, &str) = (100, "16G");
/// The same of a slow node. Nothing is slower in the guest: the kernel is told so, and puts the node into a slower tier.
const SLOW: (u32, &str) = (300, "4G");
/// What follows the size of a slow node.
const MARK: &str = "@slow";

/// How much memory each node has. Processors are dealt to those that are not slow, in turn: a node that gets none has memory alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes(Vec<Node>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Node {
    bytes: u64,
    slow: bool,
}

impl Nodes {
    /// Bytes of all of them.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|node| node.bytes).sum()
    }

    /// Whether the machine's tables call one of them slow.
    pub fn any_slow(&self) -> bool {
        self.0.iter().any(|node| node.slow)
    }

    /// QEMU's words for them, with so many processors, and with this distance of any two. The machine needs `hmat=on` where one is slow.
    pub fn words(&self, cpus: u32, distance: Option<u8>) -> Vec<String> {
        let count = self.0.len();
        let usual: Vec<usize> = (0..count).filter(|&node| !self.0[node].slow).collect();
        let of = |node: usize| (0..cpus as usize).filter(move |cpu| usual_of(&self.0, *cpu) == node);
        let mut words = Vec::new();
        for (node, Node { bytes, .. }) in self.0.iter().enumerate() {
            let processors: String = of(node).map(|cpu| format!(",cpus={cpu}")).collect();
            let near = if processors.is_empty() { usual[0] } else { node };
            let initiator = if self.any_slow() { format!(",initiator={near}") } else { String::new() };
            words.extend(["-object".to_owned(), format!("memory-backend-ram,id=node{node},size={bytes}")]);
            words.extend([
                "-numa".to_owned(),
                format!("node,nodeid={node},memdev=node{node}{processors}{initiator}"),
            ]);
        }
        let pairs = (0..count).flat_map(|from| (from + 1..count).map(move |to| (from, to)));
        for (from, to) in pairs {
            let Some(distance) = distance else { break };
            words.extend(["-numa".to_owned(), format!("dist,src={from},dst={to},val={distance}")]);
        }
        let initiators = (0..count).filter(|&node| self.any_slow() && of(node).next().is_some());
        for (initiator, target) in initiators.flat_map(|from| (0..count).map(move |to| (from, to))) {
            let (latency, bandwidth) = if self.0[target].slow { SLOW } else { USUAL };
            let table = format!("hmat-lb,initiator={initiator},target={target},hierarchy=memory");
            for said in [
                format!("data-type=access-latency,latency={latency}"),
                format!("data-type=access-bandwidth,bandwidth={bandwidth}"),
            ] {
                words.extend(["-numa".to_owned(), format!("{table},{said}")]);
            }
        }
        words
    }
}

/// The node of a processor.
fn usual_of(nodes: &[Node], cpu: usize) -> usize {
    let usual: Vec<usize> = (0..nodes.len()).filter(|&node| !nodes[node].slow).collect();
    usual[cpu % usual.len()]
}

impl FromStr for Nodes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "numa is NxSIZE or SIZE+SIZE, of 2 to {MAX_NODES} nodes of 16M and more, of which some but not all may be slow (SIZE{MARK}), not \
                 '{text}'"
            )
        };
        let size = |text: &str| match text.parse() {
            Ok(Size::Bytes(bytes)) if bytes >= MIN_NODE_BYTES => Ok(bytes),
            _ => Err(wrong()),
        };
        let node = |text: &str| {
            let (bytes, slow) = text.strip_suffix(MARK).map_or((text, false), |text| (text, true));
            Ok(Node { bytes: size(bytes)?, slow })
        };
        let nodes = match text.split_once('x') {
            Some((count, each)) => {
                let count =
                    count.parse().ok().filter(|count| (2..=MAX_NODES).contains(count)).ok_or_else(wrong)?;
                vec![Node { bytes: size(each)?, slow: false }; count]
            }
            None => text.split('+').map(node).collect::<Result<Vec<Node>, String>>()?,
        };
        let possible = (2..=MAX_NODES).contains(&nodes.len()) && nodes.iter().any(|node| !node.slow);
        if possible { Ok(Self(nodes)) } else { Err(wrong()) }
    }
}

impl fmt::Display for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let node = |node: &Node| format!("{}{}", Size::Bytes(node.bytes), if node.slow { MARK } else { "" });
        f.write_str(&self.0.iter().map(node).collect::<Vec<_>>().join("+"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_as_people_write_them() {
        let two: Nodes = "2x512M".parse().unwrap();
        assert_eq!((two.bytes(), two.to_string().as_str()), (1 << 30, "512M+512M"));
        assert_eq!("768M+256M".parse::<Nodes>().unwrap().to_string(), "768M+256M");
        for wrong in [
            "",
            "512M",
            "1x512M",
            "9x64M",
            "2x1M",
            "2x",
            "x512M",
            "512M+",
            "2x100p",
            "512M@slow+512M@slow",
            "2x512M@slow",
            "512M+512M@fast",
        ] {
            assert!(wrong.parse::<Nodes>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn slow_nodes_have_no_processor_and_are_in_the_tables() {
        let nodes: Nodes = "256M+512M@slow".parse().unwrap();
        assert_eq!((nodes.bytes(), nodes.to_string().as_str()), (768 << 20, "256M+512M@slow"));
        let words = nodes.words(2, None).join(" ");
        assert!(words.contains("nodeid=0,memdev=node0,cpus=0,cpus=1,initiator=0 "), "{words}");
        assert!(words.contains("nodeid=1,memdev=node1,initiator=0 "), "{words}");
        assert_eq!(words.matches("hmat-lb").count(), 4, "{words}");
        assert!(
            words.contains("initiator=0,target=1,hierarchy=memory,data-type=access-latency,latency=300"),
            "{words}"
        );
        assert!(!"2x512M".parse::<Nodes>().unwrap().words(2, None).join(" ").contains("hmat"));
    }

    #[test]
    fn processors_are_dealt_in_turn_and_the_last_node_may_get_none() {
        let nodes: Nodes = "2x512M".parse().unwrap();
        let words = nodes.words(1, None).join(" ");
        assert!(
            words.contains("nodeid=0,memdev=node0,cpus=0") && words.ends_with("nodeid=1,memdev=node1"),
            "{words}"
        );
        let words = nodes.words(3, Some(40)).join(" ");
        assert!(words.contains("memdev=node0,cpus=0,cpus=2 "), "{words}");
        assert!(words.ends_with("-numa dist,src=0,dst=1,val=40"), "{words}");
    }
}
