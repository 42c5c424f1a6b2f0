//! The roles of the loop, and their turns.

use super::Phase;
use crate::words;

words! {
    /// One of the five who share the work. Each has a terminal of its own.
    #[derive(PartialOrd, Ord, Hash, utoipa::ToSchema)]
    pub enum Role ("role") {
        Analyst = "analyst",
        PeerAnalyst = "peer_analyst",
        Programmer = "programmer",
        PeerProgrammer = "peer_programmer",
        Tester = "tester",
    }
}

impl Role {
    /// Returns the default profile.
    pub fn profile(self) -> &'static str {
        match self {
            Self::Analyst => "system_analyst",
            Self::PeerAnalyst => "peer_system_analyst",
            Self::Programmer => "programmer",
            Self::PeerProgrammer => "peer_programmer",
            Self::Tester => "tester",
        }
    }

    /// Returns the role's own turn. Roles and turns are declared in the same order.
    pub fn key(self) -> Key {
        Key::ALL[self as usize]
    }
}

words! {
    /// A kind of turn: what is asked for, and the name of the file in which the answer comes.
    #[derive(PartialOrd, Ord, Hash, utoipa::ToSchema)]
    #[schema(as = TurnKey)]
    pub enum Key ("turn") {
        Analyst = "analyst",
        AnalystReview = "analyst_review",
        Programmer = "programmer",
        ProgrammerReview = "programmer_review",
        Tester = "tester",
    }
}

impl Key {
    /// Returns the role that takes this turn.
    pub fn role(self) -> Role {
        Role::ALL[self as usize]
    }

    /// Returns the phase of this turn.
    pub fn phase(self) -> Phase {
        match self {
            Self::Analyst | Self::AnalystReview => Phase::Analyst,
            Self::Programmer | Self::ProgrammerReview => Phase::Programmer,
            Self::Tester => Phase::Tester,
        }
    }

    /// Returns the name of the answer's file.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Analyst => "analyst_summary.md",
            Self::AnalystReview => "analyst_review.md",
            Self::Programmer => "programmer_summary.md",
            Self::ProgrammerReview => "programmer_review.md",
            Self::Tester => "test_result.md",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_role_has_a_turn_of_its_own() {
        let words = Role::ALL.map(|role| (role.as_str(), role.key().as_str()));
        let reviews = [("peer_analyst", "analyst_review"), ("peer_programmer", "programmer_review")];
        let expected =
            [("analyst", "analyst"), reviews[0], ("programmer", "programmer"), reviews[1], ("tester", "tester")];
        assert_eq!(words, expected);
        assert_eq!(Role::ALL.map(|role| role.key().role()), Role::ALL);
    }
}
